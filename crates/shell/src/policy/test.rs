//! `[[ … ]]` and `[ … ]`: which of their words the shell evaluates, which can run commands hidden in an index.

use brush_parser::ast::{BinaryPredicate as Binary, ExtendedTestExpr as Expr, UnaryPredicate as Unary, Word};

use super::part::Arg;

/// The words of `[[ … ]]`, each with whether it is evaluated.
pub(super) fn words(expression: &Expr) -> Vec<(&Word, bool)> {
    match expression {
        Expr::And(left, right) | Expr::Or(left, right) => [words(left), words(right)].concat(),
        Expr::Not(inner) | Expr::Parenthesized(inner) => words(inner),
        Expr::UnaryTest(predicate, word) => {
            let evaluated = matches!(
                predicate,
                Unary::ShellVariableIsSetAndAssigned | Unary::ShellVariableIsSetAndNameRef
            );
            vec![(word, evaluated)]
        }
        Expr::BinaryTest(predicate, left, right) => {
            let evaluated = matches!(
                predicate,
                Binary::ArithmeticEqualTo
                    | Binary::ArithmeticNotEqualTo
                    | Binary::ArithmeticLessThan
                    | Binary::ArithmeticLessThanOrEqualTo
                    | Binary::ArithmeticGreaterThan
                    | Binary::ArithmeticGreaterThanOrEqualTo
            );
            vec![(left, evaluated), (right, evaluated)]
        }
    }
}

/// Whether `test …` or `[ … ]` runs nothing: no operator that evaluates, and none that could stand where a word is not known.
pub(super) fn is_safe(rest: &[Arg]) -> bool {
    const EVALUATING: &[&str] = &["-v", "-R", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
    let unknown = |arg: &Arg| arg.literal().is_none();
    let pair = |pair: &[Arg]| unknown(&pair[0]) && unknown(&pair[1]);
    let first = rest.first().is_some_and(unknown)
        && !rest.get(1).is_none_or(|arg| matches!(arg.text(), "=" | "==" | "!=" | "]"));
    let evaluates = |(at, arg): (usize, &Arg)| {
        let number = |at: Option<usize>| {
            at.and_then(|at| rest.get(at)).is_some_and(|arg| arg.text().parse::<i64>().is_ok())
        };
        match arg.literal() {
            Some("-v" | "-R") => true,
            Some(text) if EVALUATING.contains(&text) => !(number(at.checked_sub(1)) && number(Some(at + 1))),
            _ => false,
        }
    };
    // Without quotes a word that is not known may become several, operators among them.
    !first
        && rest.iter().all(|arg| arg.word.stays_one())
        && !rest.windows(2).any(pair)
        && !rest.iter().enumerate().any(evaluates)
        && rest.iter().all(|arg| arg.word.is_tame())
}
