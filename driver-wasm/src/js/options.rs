use std::fmt::Display;
use std::str::FromStr;

use delayline_core::UnixMs;
use delayline_http::Problem;
use js_sys::{Date, Function, Object, Reflect};
use wasm_bindgen::prelude::*;

use crate::number;

/// The largest whole number up to which JavaScript has them all.
const LARGEST: f64 = 9_007_199_254_740_991.0;

/// What an object of options says.
///
/// Whoever reads it takes each option it knows, then calls [`Options::finish`], which refuses what is left: a misspelt
/// option must not be ignored. An option that is `undefined` is not given; `null` is refused.
pub(super) struct Options {
    of: &'static str,
    given: Option<Object>,
    known: Vec<&'static str>,
}

impl Options {
    /// The options of whatever `of` names, which may be left out altogether.
    pub(super) fn new(of: &'static str, given: &JsValue) -> Result<Options, Problem> {
        let none = given.is_undefined() || given.is_null();
        if !none && (!given.is_object() || given.is_function()) {
            return Err(bad(format!("the options of {of} are no object: write {{ name: value }}")));
        }
        Ok(Options { of, given: (!none).then(|| given.clone().unchecked_into()), known: Vec::new() })
    }

    /// The option as it is, be it `null`.
    pub(super) fn any(&mut self, name: &'static str) -> Result<Option<JsValue>, Problem> {
        self.known.push(name);
        let Some(given) = &self.given else { return Ok(None) };
        let value = Reflect::get(given, &name.into());
        let value = value.map_err(|_| bad(format!("{name} of {} cannot be read", self.of)))?;
        Ok((!value.is_undefined()).then_some(value))
    }

    fn get(&mut self, name: &'static str) -> Result<Option<JsValue>, Problem> {
        match self.any(name)? {
            Some(null) if null.is_null() => Err(bad(format!("{name} is null: leave it out"))),
            value => Ok(value),
        }
    }

    /// A text.
    pub(super) fn text(&mut self, name: &'static str) -> Result<Option<String>, Problem> {
        let Some(value) = self.get(name)? else { return Ok(None) };
        value.as_string().map(Some).ok_or_else(|| bad(format!("{name} must be a string")))
    }

    /// A text that stands for something.
    pub(super) fn parsed<T: FromStr<Err: Display>>(
        &mut self,
        name: &'static str,
    ) -> Result<Option<T>, Problem> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        text.parse().map(Some).map_err(|error| bad(format!("{name}: {error}")))
    }

    /// A text that must be there.
    pub(super) fn required(&mut self, name: &'static str) -> Result<String, Problem> {
        self.text(name)?.ok_or_else(|| bad(format!("{} needs {name}", self.of)))
    }

    /// Whether.
    pub(super) fn flag(&mut self, name: &'static str) -> Result<bool, Problem> {
        let Some(value) = self.get(name)? else { return Ok(false) };
        value.as_bool().ok_or_else(|| bad(format!("{name} must be true or false")))
    }

    /// A number of milliseconds, rounded up: nothing is ever early.
    pub(super) fn ms(&mut self, name: &'static str) -> Result<Option<u64>, Problem> {
        let Some(value) = self.get(name)? else { return Ok(None) };
        let number = value.as_f64().and_then(whole);
        number.map(Some).ok_or_else(|| bad(format!("{name} must be a number of milliseconds, 0 or more")))
    }

    /// A whole number.
    pub(super) fn count<T: TryFrom<u64>>(&mut self, name: &'static str) -> Result<Option<T>, Problem> {
        let Some(value) = self.get(name)? else { return Ok(None) };
        let number = value.as_f64().filter(|number| number.fract() == 0.0).and_then(whole);
        let number = number.and_then(|number| number.try_into().ok());
        number.map(Some).ok_or_else(|| bad(format!("{name} is not a whole number that can be used here")))
    }

    /// A point in time: a `Date`, or milliseconds since 1970.
    pub(super) fn time(&mut self, name: &'static str) -> Result<Option<UnixMs>, Problem> {
        let Some(value) = self.get(name)? else { return Ok(None) };
        let ms = value.dyn_ref::<Date>().map(Date::get_time).or_else(|| value.as_f64());
        let at = ms.and_then(whole).map(|ms| Some(UnixMs(ms)));
        at.ok_or_else(|| bad(format!("{name} must be a valid Date, or a number of milliseconds since 1970")))
    }

    /// A function.
    pub(super) fn function(&mut self, name: &'static str) -> Result<Option<Function>, Problem> {
        let Some(value) = self.get(name)? else { return Ok(None) };
        value.dyn_into().map(Some).map_err(|_| bad(format!("{name} must be a function")))
    }

    /// Texts by name.
    pub(super) fn texts(&mut self, name: &'static str) -> Result<Vec<(String, String)>, Problem> {
        let Some(value) = self.get(name)? else { return Ok(Vec::new()) };
        if !value.is_object() {
            return Err(bad(format!("{name} must be an object of strings")));
        }
        let object: Object = value.unchecked_into();
        let names = Object::keys(&object).iter().filter_map(|key| key.as_string()).collect::<Vec<_>>();
        let read = |key: String| {
            let value = Reflect::get(&object, &key.as_str().into()).ok().and_then(|value| value.as_string());
            value
                .map(|value| (key.clone(), value))
                .ok_or_else(|| bad(format!("{name}.{key} must be a string")))
        };
        names.into_iter().map(read).collect()
    }

    /// Refuses what no one has read.
    pub(super) fn finish(self) -> Result<(), Problem> {
        let Some(given) = &self.given else { return Ok(()) };
        let left = |name: &String| !self.known.contains(&name.as_str());
        let mut names = Object::keys(given).into_iter().filter_map(|name| name.as_string());
        let Some(unknown) = names.find(left) else { return Ok(()) };
        let shown: String = unknown.chars().take(80).collect();
        let detail = format!("{shown:?} is not an option of {}: use {}", self.of, self.known.join(", "));
        Err(Problem::bad("unknown_option", detail))
    }
}

/// An option has a value that it cannot have.
pub(super) fn bad(detail: String) -> Problem {
    Problem::bad("bad_option", detail)
}

/// The next whole number, if there is one.
fn whole(number: f64) -> Option<u64> {
    let number = number.ceil();
    (0.0..=LARGEST).contains(&number).then(|| number::whole(number))
}
