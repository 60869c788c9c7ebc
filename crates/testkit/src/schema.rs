//! The part of JSON Schema that tool schemas use, as a strict client checks it.

use serde_json::Value;

/// Whether `value` conforms to `schema`; else where it does not.
pub fn conforms(schema: &Value, value: &Value) -> Result<(), String> {
    at("$", schema, value)
}

fn at(place: &str, schema: &Value, value: &Value) -> Result<(), String> {
    for key in ["anyOf", "oneOf"] {
        if let Some(choices) = schema[key].as_array()
            && !choices.iter().any(|choice| at(place, choice, value).is_ok())
        {
            return Err(format!("{place}: fits none of {key}"));
        }
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        return Err(format!("{place}: {value} is not in the enum"));
    }
    if schema.get("const").is_some_and(|only| only != value) {
        return Err(format!("{place}: {value} is not the constant"));
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !kinds.is_empty() && !kinds.iter().any(|kind| is(kind, value)) {
        return Err(format!("{place}: {value} is not {}", kinds.join(" or ")));
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.is_object() && value.get(name).is_none() {
            return Err(format!("{place}.{name}: is required"));
        }
    }
    for (name, field) in value.as_object().into_iter().flatten() {
        match schema["properties"].get(name) {
            Some(inner) => at(&format!("{place}.{name}"), inner, field)?,
            None if schema["additionalProperties"] == Value::Bool(false) => {
                return Err(format!("{place}.{name}: is not allowed"));
            }
            None if schema["additionalProperties"].is_object() => {
                at(&format!("{place}.{name}"), &schema["additionalProperties"], field)?;
            }
            None => {}
        }
    }
    let items = schema.get("items").map(|items| (items, value.as_array()));
    if let Some((items, Some(list))) = items {
        for (index, item) in list.iter().enumerate() {
            at(&format!("{place}[{index}]"), items, item)?;
        }
    }
    Ok(())
}

fn is(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("a schema names the type {other}"),
    }
}
