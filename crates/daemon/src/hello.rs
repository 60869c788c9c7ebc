//! The first line in each direction of a connection.

use cotenant_model::{Code, Durability, FactValue, Profile, Refusal, ToolSet};
use cotenant_tools::host::Hello;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The revision of this wire.
pub(crate) const WIRE: u32 = 1;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// An agent's MCP session: JSON-RPC follows.
    Mcp,
    /// Requests of the command line follow.
    Admin,
}

/// The first line of a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct First {
    /// The revision of the wire.
    pub(crate) cotenant: u32,
    /// The client's build.
    pub(crate) build: String,
    /// Whether a daemon of another build will do: a bridge that has lost its daemon takes whichever there is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) any_build: bool,
    pub(crate) kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) profile: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) durability: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) structured: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) plan: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) number: Option<u64>,
}

impl First {
    pub(crate) fn new(kind: Kind, any_build: bool, hello: &Hello) -> First {
        First {
            cotenant: WIRE,
            build: crate::build_id().to_owned(),
            any_build,
            kind,
            agent: hello.agent.clone(),
            task: hello.task.clone(),
            profile: hello.profile.map(|profile| profile.name().to_owned()),
            durability: hello.durability.map(|durability| durability.name().to_owned()),
            tools: hello.tools.as_ref().map(|sets| sets.iter().map(|set| set.name().to_owned()).collect()),
            structured: hello.structured,
            plan: hello.plan,
            number: hello.number,
        }
    }

    /// What it says of the session; `pid` is the kernel's word.
    pub(crate) fn hello(&self, pid: u32) -> Result<Hello, Refusal> {
        Ok(Hello {
            human: false,
            agent: self.agent.clone(),
            task: self.task.clone(),
            profile: self
                .profile
                .as_deref()
                .map(|word| known("profile", word, Profile::parse))
                .transpose()?,
            durability: self
                .durability
                .as_deref()
                .map(|word| known("durability", word, Durability::parse))
                .transpose()?,
            tools: self
                .tools
                .as_ref()
                .map(|words| words.iter().map(|word| known("tools", word, ToolSet::parse)).collect())
                .transpose()?,
            structured: self.structured,
            plan: self.plan,
            number: self.number,
            pid: Some(pid),
        })
    }
}

fn known<T>(field: &'static str, word: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T, Refusal> {
    parse(word).ok_or_else(|| {
        Refusal::new(Code::BadInput, format!("There is no {field} of that name.")).fact(field, word)
    })
}

/// The first line of the daemon.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Reply {
    /// The connection stands.
    Open {
        /// Always true.
        ok: bool,
        /// The daemon's build.
        build: String,
        /// The daemon's process.
        pid: u32,
        /// The number of an agent's session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<u64>,
    },
    /// The daemon is of another build and goes away once its calls are done: connect again.
    Replaced {
        /// Always true.
        replaced: bool,
    },
    /// The connection does not stand.
    Refused {
        /// Why.
        refusal: Value,
    },
}

/// A refusal as the wire carries it.
pub(crate) fn refusal_json(refusal: &Refusal) -> Value {
    let facts: Map<String, Value> = refusal
        .facts
        .iter()
        .map(|fact| {
            let value = match &fact.value {
                FactValue::Text(text) => json!(text),
                FactValue::Number(number) => json!(number),
                FactValue::Flag(flag) => json!(flag),
                FactValue::List(list) => json!(list),
            };
            (fact.name.to_string(), value)
        })
        .collect();
    json!({
        "code": refusal.code.name(),
        "message": refusal.message,
        "block": refusal.block,
        "next": refusal.next,
        "facts": facts,
        "text": refusal.to_string(),
    })
}

/// The refusal that [`refusal_json`] made.
pub(crate) fn refusal_of(json: &Value) -> Refusal {
    let text = |name: &str| json.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let code = text("code");
    let code = Code::ALL.iter().copied().find(|known| known.name() == code).unwrap_or(Code::IoError);
    let refusal = Refusal::new(code, text("message")).block(text("block")).next(text("next"));
    let facts = json.get("facts").and_then(Value::as_object);
    facts.into_iter().flatten().fold(refusal, |refusal, (name, value)| {
        let value = match value {
            Value::Bool(flag) => FactValue::Flag(*flag),
            Value::Number(number) => FactValue::Number(number.as_i64().unwrap_or(i64::MAX)),
            Value::Array(list) => {
                FactValue::List(list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
            }
            other => FactValue::Text(other.as_str().unwrap_or_default().to_owned()),
        };
        refusal.fact(name.clone(), value)
    })
}
