//! A grant: the unforgeable permission to commit one plan, minted here and consumed by the engine alone.

use cotenant_model::{ApprovalId, Digest, Plan};

/// A lease's token: rises strictly per workspace, and is checked again in the critical section of the swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseToken(pub u64);

/// Who let it pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approver {
    /// Profile and rules.
    Policy,
    /// A human.
    Human {
        /// The question they answered; `None` where they gave the command themselves.
        question: Option<ApprovalId>,
    },
}

/// Permission to commit one plan, once. It cannot be made outside this crate and cannot be copied; committing takes
/// it by value.
///
/// ```compile_fail,E0451
/// # fn forge(plan: cotenant_model::Plan) -> cotenant_coord::Grant {
/// let (digest, approver) = (plan.digest(), cotenant_coord::Approver::Policy);
/// cotenant_coord::Grant { plan, digest, tokens: Vec::new(), approver }
/// # }
/// ```
///
/// ```compile_fail,E0599
/// # fn twice(grant: &cotenant_coord::Grant) -> cotenant_coord::Grant {
/// grant.clone()
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a grant that is dropped is a plan that never lands"]
pub struct Grant {
    plan: Plan,
    digest: Digest,
    tokens: Vec<LeaseToken>,
    approver: Approver,
}

impl Grant {
    pub(crate) fn mint(plan: Plan, tokens: Vec<LeaseToken>, approver: Approver) -> Grant {
        Grant { digest: plan.digest(), plan, tokens, approver }
    }

    /// The plan that may be committed, and no other.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The plan's digest.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The lease tokens that must still be valid when it is committed.
    pub fn tokens(&self) -> &[LeaseToken] {
        &self.tokens
    }

    /// Who let it pass.
    pub fn approver(&self) -> Approver {
        self.approver
    }

    /// Gives the grant up for its plan, to commit it or to plan anew.
    pub fn into_plan(self) -> Plan {
        self.plan
    }
}
