//! What `.gitattributes` says is generated.

/// Parsed `.gitattributes` files.
#[derive(Debug, Default)]
pub(crate) struct AttributeCache;
