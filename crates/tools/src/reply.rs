//! What a tool answers: facts for line 1, content below, further fields for programs; and how that becomes text.

use std::borrow::Cow;

use cotenant_model::{Fact, FactValue, Refusal};
use serde_json::{Map, Value};

/// A tool's result before it is rendered.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// A word before the facts, such as `running`; for programs a flag.
    pub lead: &'static str,
    /// Line 1, in order.
    pub facts: Vec<Fact>,
    /// Lines for the model, each rendered with `! ` before it.
    pub notices: Vec<String>,
    /// Below: data, to the end. Without a final newline.
    pub content: String,
    /// Further fields of `--json` and `structuredContent`, such as `changes`.
    pub fields: Map<String, Value>,
}

impl Reply {
    /// An empty reply.
    pub fn new() -> Reply {
        Reply::default()
    }

    /// Adds a fact.
    #[must_use]
    pub fn fact(mut self, name: impl Into<Cow<'static, str>>, value: impl Into<FactValue>) -> Reply {
        self.facts.push(Fact { name: name.into(), value: value.into() });
        self
    }

    /// Sets the word before the facts.
    #[must_use]
    pub fn lead(mut self, word: &'static str) -> Reply {
        self.lead = word;
        self
    }

    /// Adds a fact where `value` is something.
    #[must_use]
    pub fn fact_if(self, name: &'static str, value: Option<impl Into<FactValue>>) -> Reply {
        match value {
            Some(value) => self.fact(name, value),
            None => self,
        }
    }

    /// Sets the content.
    #[must_use]
    pub fn content(mut self, content: impl Into<String>) -> Reply {
        self.content = content.into();
        self
    }

    /// Adds a notice.
    #[must_use]
    pub fn notice(mut self, notice: impl Into<String>) -> Reply {
        self.notices.push(notice.into());
        self
    }

    /// Adds a field for programs.
    #[must_use]
    pub fn field(mut self, name: &str, value: impl Into<Value>) -> Reply {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    /// The one text block: facts, the announced notices, the content.
    pub fn text(&self) -> String {
        let mut text = String::with_capacity(self.content.len() + 160);
        text.push_str(self.lead);
        for fact in &self.facts {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(&fact.to_string());
        }
        if !self.notices.is_empty() {
            let space = if text.is_empty() { "" } else { " " };
            text.push_str(&format!("{space}notices={}", self.notices.len()));
        }
        for notice in &self.notices {
            text.push_str("\n! ");
            // A notice is one line: a name in it must not end the line and fake another.
            text.push_str(&notice.replace(['\n', '\r'], " "));
        }
        if !self.content.is_empty() {
            text.push('\n');
            text.push_str(&self.content);
        }
        text
    }

    /// All fields for programs; `text` is added by who prints it.
    pub fn json(&self) -> Map<String, Value> {
        let mut map = facts_json(&self.facts);
        if !self.lead.is_empty() {
            map.insert(self.lead.to_owned(), true.into());
        }
        if !self.notices.is_empty() {
            map.insert("notices".to_owned(), self.notices.clone().into());
        }
        if !self.content.is_empty() {
            map.entry("content".to_owned()).or_insert_with(|| self.content.clone().into());
        }
        map.extend(self.fields.clone());
        map
    }
}

/// Facts as JSON: numbers, booleans, arrays, texts.
pub fn facts_json(facts: &[Fact]) -> Map<String, Value> {
    facts.iter().map(|fact| (fact.name.to_string(), value_json(&fact.value))).collect()
}

fn value_json(value: &FactValue) -> Value {
    match value {
        FactValue::Text(text) => text.as_str().into(),
        FactValue::Number(number) => (*number).into(),
        FactValue::Flag(flag) => (*flag).into(),
        FactValue::List(list) => list.clone().into(),
    }
}

/// A refusal for programs: `code`, `message`, `next`, `facts`.
pub fn refusal_json(refusal: &Refusal) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("code".to_owned(), refusal.code.name().into());
    map.insert("message".to_owned(), refusal.message.as_str().into());
    map.insert("next".to_owned(), refusal.next.as_str().into());
    map.insert("facts".to_owned(), facts_json(&refusal.facts).into());
    map
}

/// A call as a `next:` line shows it: `read_file {"path":"x"}`.
pub fn call_text(tool: &str, args: &Value) -> String {
    format!("{tool} {args}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use cotenant_model::Code;
    use serde_json::json;

    #[test]
    fn line_one_then_announced_notices_then_content() {
        let reply = Reply::new().fact("path", "a b").fact("lines", "1-2").notice("x\ny").content("1|a\n2|b");
        assert_eq!(reply.text(), "path=\"a b\" lines=1-2 notices=1\n! x y\n1|a\n2|b");
        assert_eq!(
            Value::from(reply.json()),
            json!({"path": "a b", "lines": "1-2", "notices": ["x\ny"], "content": "1|a\n2|b"})
        );
    }

    #[test]
    fn a_refusal_keeps_its_types_for_programs() {
        let refusal =
            Refusal::new(Code::NotFound, "No.").fact("tries", 2u32).fact("seen", true).next("whoami {}");
        assert_eq!(
            Value::from(refusal_json(&refusal)),
            json!({"code": "NOT_FOUND", "message": "No.", "next": "whoami {}", "facts": {"tries": 2, "seen": true}})
        );
    }
}
