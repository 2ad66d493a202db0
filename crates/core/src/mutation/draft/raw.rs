//! What stands in a field before it is checked, borrowed from the line where that is possible.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::Draft;
use super::field::{Field, unknown_rule};
use crate::mutation::fault::Fault;

/// A value as it was written. Numbers keep their digits: nothing here is ever a binary float.
#[derive(Debug)]
pub(super) enum Raw<'a> {
    /// A JSON string.
    Text(Cow<'a, str>),
    /// A JSON string whose escapes stand for no text.
    Broken(&'a str),
    /// A JSON number, digit by digit.
    Number(&'a str),
    /// `true` or `false`.
    Flag(bool),
    /// `null`: the field counts as absent.
    Null,
    /// An array.
    Array(&'a str),
    /// An object.
    Object(&'a str),
    /// A cell of a table: text, number or flag as the field wants it.
    Cell(&'a str),
}

impl<'a> Raw<'a> {
    /// Takes one JSON value that has been found well-formed.
    fn from_json(json: &'a str) -> Self {
        match json.as_bytes() {
            [b'"', inner @ .., b'"'] => {
                let text = json.get(1..json.len() - 1).unwrap_or_default();
                if inner.contains(&b'\\') {
                    serde_json::from_str(json).map_or(Self::Broken(text), |text| Self::Text(Cow::Owned(text)))
                } else {
                    Self::Text(Cow::Borrowed(text))
                }
            }
            [b't', ..] => Self::Flag(true),
            [b'f', ..] => Self::Flag(false),
            [b'n', ..] => Self::Null,
            [b'[', ..] => Self::Array(json),
            [b'{', ..] => Self::Object(json),
            _ => Self::Number(json),
        }
    }

    /// The text, if it is one.
    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Cell(text) => Some(text),
            Self::Broken(_)
            | Self::Number(_)
            | Self::Flag(_)
            | Self::Null
            | Self::Array(_)
            | Self::Object(_) => None,
        }
    }

    /// The boolean, if it is one. A cell may be in capitals: spreadsheets write them so.
    pub(super) const fn as_flag(&self) -> Option<bool> {
        match self {
            Self::Flag(flag) => Some(*flag),
            Self::Cell(cell) if cell.eq_ignore_ascii_case("true") => Some(true),
            Self::Cell(cell) if cell.eq_ignore_ascii_case("false") => Some(false),
            Self::Cell(_)
            | Self::Text(_)
            | Self::Broken(_)
            | Self::Number(_)
            | Self::Null
            | Self::Array(_)
            | Self::Object(_) => None,
        }
    }

    /// What to show of it in a fault.
    pub(super) fn shown(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Broken(text)
            | Self::Number(text)
            | Self::Array(text)
            | Self::Object(text)
            | Self::Cell(text) => text,
            Self::Flag(true) => "true",
            Self::Flag(false) => "false",
            Self::Null => "null",
        }
    }

    /// What it is, to say what it should not be.
    pub(super) const fn shape(&self) -> &'static str {
        match self {
            Self::Text(_) | Self::Cell(_) => "text",
            Self::Broken(_) => "text with a broken escape",
            Self::Number(_) => "a number",
            Self::Flag(_) => "a boolean",
            Self::Null => "null",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }
}

/// A key, looked up without being copied.
enum Key {
    Known(Field),
    Unknown(String),
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = Key;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a field's name")
            }
            fn visit_str<E>(self, name: &str) -> Result<Key, E> {
                Ok(Field::find(name).map_or_else(|| Key::Unknown(name.to_owned()), Key::Known))
            }
        }
        deserializer.deserialize_str(Name)
    }
}

/// Fills a draft from a JSON object.
pub(super) struct Object<'d, 'a>(pub(super) &'d mut Draft<'a>);

impl<'de> DeserializeSeed<'de> for Object<'_, 'de> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Object<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(key) = map.next_key::<Key>()? {
            let raw = Raw::from_json(map.next_value::<&'de RawValue>()?.get());
            match key {
                Key::Known(field) => self.0.put(field, raw),
                Key::Unknown(name) => {
                    self.0.faults.push(Fault::new(&name, Some(raw.shown()), unknown_rule(&name)));
                }
            }
        }
        Ok(())
    }
}
