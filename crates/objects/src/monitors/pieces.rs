//! The composition of a key's value: a value that was put, or the initial one, followed by the
//! values appended to it.
//!
//! Puts and appends are numbered separately, in the order of their calls. The first of several
//! equal ones represents all; [`super::store`] tells them apart.

use consistory_history::{Value, ValueId};
use consistory_spec::Lexicon;
use rustc_hash::FxHashMap;

use super::Unsuitable;
use crate::calls::{CallIndex, Calls};

/// Values that are put and appended to one key.
pub(super) struct Pieces<'h> {
    initial: Value,
    /// Indices of the puts and of the appends of each value.
    puts: FxHashMap<&'h Value, Vec<usize>>,
    appends: FxHashMap<&'h Value, Vec<usize>>,
    /// Whether all values are texts. If so, `texts` holds the first of each group of equal texts
    /// with its number: the puts, then the appends.
    are_texts: bool,
    texts: Vec<(usize, &'h str)>,
    put_texts: usize,
    lexicon: Lexicon<'h>,
    /// Whether a text can be decomposed in at most one way.
    is_prefix_free: bool,
    /// Whether two pieces are equal, or one equals the initial value.
    pub(super) is_repeated: bool,
}

/// Result of decomposing a value that was read.
pub(super) enum Composition {
    /// The only composition: a base, a number of appends that were read before, and further
    /// appends.
    Unique { base: Base, shown: usize, further: Vec<usize> },
    /// There are several compositions.
    Several,
    /// There is no composition.
    Impossible,
}

/// Value before the first append.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Base {
    Initial,
    Put(usize),
}

impl<'h> Pieces<'h> {
    pub(super) fn new(
        calls: &Calls<'h>,
        puts: &[(CallIndex, ValueId)],
        appends: &[(CallIndex, ValueId)],
        initial: &Value,
    ) -> Result<Self, Unsuitable> {
        let grouped = |of: &[(CallIndex, ValueId)]| {
            let mut groups: FxHashMap<&'h Value, Vec<usize>> = FxHashMap::default();
            for (i, &(_, id)) in of.iter().enumerate() {
                groups.entry(calls.value(id)).or_default().push(i);
            }
            groups
        };
        let (puts, appends) = (grouped(puts), grouped(appends));
        // A piece that changes nothing cannot be observed.
        let empty = Value::Str("".into());
        if appends.contains_key(&empty) {
            return Err(Unsuitable::NotDifferentiated { value: empty });
        }
        let is_list = |value: &Value| matches!(value, Value::List(_));
        let is_text = |value: &Value| text_of(value).is_some();
        let is_null = *initial == Value::Null;
        let are_texts = (is_null || is_text(initial))
            && puts.keys().chain(appends.keys()).all(|value| is_text(value));
        let are_lists = (is_null || is_list(initial))
            && puts.keys().all(|value| is_list(value))
            && !appends.keys().any(|value| is_text(value));
        if !(appends.is_empty() || are_texts || are_lists) {
            return Err(Unsuitable::Mixed);
        }
        let texts_of = |of: &FxHashMap<&'h Value, Vec<usize>>| {
            let first = |(value, same): (&&'h Value, &Vec<usize>)| Some((same[0], text_of(value)?));
            let mut texts: Vec<(usize, &str)> = of.iter().filter_map(first).collect();
            texts.retain(|_| are_texts);
            texts.sort_unstable();
            texts
        };
        let mut texts = texts_of(&puts);
        let put_texts = texts.len();
        texts.extend(texts_of(&appends));
        let lexicon = Lexicon::new(texts.iter().map(|&(_, text)| text));
        let mut begins: Vec<&str> = texts.iter().map(|&(_, text)| text).collect();
        begins.extend(text_of(initial).filter(|text| !text.is_empty()));
        let is_prefix_free = Lexicon::new(begins).is_prefix_free();
        let is_repeated = puts.values().chain(appends.values()).any(|same| same.len() > 1)
            || puts.keys().any(|put| *put == initial)
            || are_texts && puts.keys().any(|put| appends.contains_key(put));
        let initial = initial.clone();
        Ok(Pieces {
            initial,
            puts,
            appends,
            are_texts,
            texts,
            put_texts,
            lexicon,
            is_prefix_free,
            is_repeated,
        })
    }

    /// Returns all puts of a value, in the order of their calls.
    pub(super) fn puts_of(&self, value: &Value) -> &[usize] {
        self.puts.get(value).map_or(&[], Vec::as_slice)
    }

    /// Returns all appends of a value, in the order of their calls.
    pub(super) fn appends_of(&self, value: &Value) -> &[usize] {
        self.appends.get(value).map_or(&[], Vec::as_slice)
    }

    /// Returns the composition of a value, given the possible bases. `longest` returns the longest
    /// text read so far with a base, and its number of appends.
    pub(super) fn parse<'a>(
        &self,
        read: &Value,
        is_possible: impl Fn(Base) -> bool,
        longest: impl Fn(Base) -> Option<(&'a str, usize)>,
    ) -> Composition {
        match read {
            Value::Str(text) if self.are_texts => self.parse_text(text, is_possible, longest),
            other => self.parse_list(other, is_possible),
        }
    }

    fn parse_text<'a>(
        &self,
        text: &str,
        is_possible: impl Fn(Base) -> bool,
        longest: impl Fn(Base) -> Option<(&'a str, usize)>,
    ) -> Composition {
        // Positions at which the appends may begin, each with its base; from long to short.
        let puts = self.lexicon.beginnings(text).filter(|&(number, _)| number < self.put_texts);
        let put = |number: usize| Base::Put(self.texts[number].0);
        let mut bases: Vec<(usize, Base)> =
            puts.map(|(number, begin)| (begin.len(), put(number))).collect();
        match &self.initial {
            Value::Str(begin) if text.starts_with(&**begin) => {
                bases.push((begin.len(), Base::Initial));
            }
            Value::Null if !text.is_empty() => bases.push((0, Base::Initial)),
            _ => {}
        }
        bases.retain(|&(_, base)| is_possible(base));
        let mut shown = 0;
        if self.is_prefix_free {
            // The prefix of the text is its base, and the appends read before are read again.
            bases.truncate(1);
            if let Some((from, base)) = bases.first_mut()
                && let Some((before, appends)) = longest(*base)
                && text.starts_with(before)
            {
                (*from, shown) = (before.len(), appends);
            }
        }
        let Some(first) = bases.iter().map(|&(from, _)| from).min() else {
            return Composition::Impossible;
        };
        // Number of ways to reach each position, and the append that ends there.
        let mut ways = vec![0u8; text.len() + 1 - first];
        let mut by: Vec<Option<usize>> = vec![None; ways.len()];
        bases.iter().for_each(|&(from, _)| ways[from - first] += 1);
        for at in first..text.len() {
            let so_far = ways[at - first].min(2);
            if so_far == 0 {
                continue;
            }
            for (number, piece) in self.lexicon.beginnings(&text[at..]) {
                if number >= self.put_texts {
                    let to = at + piece.len() - first;
                    ways[to] = ways[to].min(2) + so_far;
                    by[to] = Some(number);
                }
            }
        }
        match ways[text.len() - first] {
            0 => return Composition::Impossible,
            1 => {}
            _ => return Composition::Several,
        }
        let (mut further, mut at) = (Vec::new(), text.len());
        while let Some(number) = by[at - first] {
            let (append, piece) = self.texts[number];
            further.push(append);
            at -= piece.len();
        }
        further.reverse();
        let base = bases.iter().find(|&&(from, _)| from == at);
        let base = base.expect("what is reached in one way is reached from a base").1;
        Composition::Unique { base, shown, further }
    }

    /// Returns the composition of a list or another value that is not a text.
    fn parse_list(&self, read: &Value, is_possible: impl Fn(Base) -> bool) -> Composition {
        let puts = self.puts.iter().map(|(&begin, same)| (begin, Base::Put(same[0])));
        let mut made = Composition::Impossible;
        for (begin, base) in puts.chain([(&self.initial, Base::Initial)]) {
            if !is_possible(base) {
                continue;
            }
            let rest = match (read, begin) {
                _ if read == begin => Some(&[][..]),
                (Value::List(list), Value::List(begin)) => list.strip_prefix(begin.as_slice()),
                (Value::List(list), Value::Null) if !list.is_empty() => Some(list.as_slice()),
                _ => None,
            };
            let appended = |element: &Value| self.appends_of(element).first().copied();
            if let Some(rest) = rest
                && let Some(further) = rest.iter().map(appended).collect()
            {
                match made {
                    Composition::Impossible => {
                        made = Composition::Unique { base, shown: 0, further }
                    }
                    _ => return Composition::Several,
                }
            }
        }
        made
    }
}

/// Returns a value's text, if it is one.
pub(super) fn text_of(value: &Value) -> Option<&str> {
    match value {
        Value::Str(text) => Some(text),
        _ => None,
    }
}
