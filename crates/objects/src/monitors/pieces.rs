//! What the contents of a key are made of: something that was put, or the initial value, and what
//! was appended to it, piece by piece.
//!
//! Puts and appends have numbers, each by themselves, in the order of their calls. Of those that are
//! equal the first stands for all; [`super::store`] tells them apart.

use consistory_history::{Value, ValueId};
use consistory_spec::Lexicon;
use rustc_hash::FxHashMap;

use super::Unsuitable;
use crate::calls::{Calls, Place};

/// The pieces of a key.
pub(super) struct Pieces<'h> {
    initial: Value,
    /// The puts, and the appends, by what they put or append.
    puts: FxHashMap<&'h Value, Vec<usize>>,
    appends: FxHashMap<&'h Value, Vec<usize>>,
    /// Whether all are texts. Then these are the first of those that are equal, by number and text:
    /// puts, and after them appends.
    are_texts: bool,
    texts: Vec<(usize, &'h str)>,
    put_texts: usize,
    lexicon: Lexicon<'h>,
    /// Whether no two ways to read a text begin alike.
    is_prefix_free: bool,
    /// Whether two pieces are equal, or one is the initial value.
    pub(super) is_repeated: bool,
}

/// How something that was read was made.
pub(super) enum Made {
    /// Of a base, so many appends that were read before it, and further ones.
    Of { base: Base, shown: usize, further: Vec<usize> },
    /// In several ways.
    Ambiguously,
    /// In no way.
    Nohow,
}

/// What was there before anything was appended to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Base {
    Initial,
    Put(usize),
}

impl<'h> Pieces<'h> {
    pub(super) fn new(
        calls: &Calls<'h>,
        puts: &[(Place, ValueId)],
        appends: &[(Place, ValueId)],
        initial: &Value,
    ) -> Result<Self, Unsuitable> {
        let grouped = |of: &[(Place, ValueId)]| {
            let mut groups: FxHashMap<&'h Value, Vec<usize>> = FxHashMap::default();
            for (i, &(_, id)) in of.iter().enumerate() {
                groups.entry(calls.value(id)).or_default().push(i);
            }
            groups
        };
        let (puts, appends) = (grouped(puts), grouped(appends));
        // What changes nothing leaves no trace.
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

    /// Returns all puts of something, in the order of their calls.
    pub(super) fn puts_of(&self, value: &Value) -> &[usize] {
        self.puts.get(value).map_or(&[], Vec::as_slice)
    }

    /// Returns all appends of something, in the order of their calls.
    pub(super) fn appends_of(&self, value: &Value) -> &[usize] {
        self.appends.get(value).map_or(&[], Vec::as_slice)
    }

    /// Returns how something was made, of bases that are possible. `longest` gives the longest text that
    /// was read of a base, and of how many appends it is.
    pub(super) fn parse<'a>(
        &self,
        read: &Value,
        is_possible: impl Fn(Base) -> bool,
        longest: impl Fn(Base) -> Option<(&'a str, usize)>,
    ) -> Made {
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
    ) -> Made {
        // Where the appends may begin, and after which base; from long to short.
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
            // What the text begins with is its base, and what was read before is read again.
            bases.truncate(1);
            if let Some((from, base)) = bases.first_mut()
                && let Some((before, appends)) = longest(*base)
                && text.starts_with(before)
            {
                (*from, shown) = (before.len(), appends);
            }
        }
        let Some(first) = bases.iter().map(|&(from, _)| from).min() else { return Made::Nohow };
        // For each place in how many ways it is reached, and by which append.
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
            0 => return Made::Nohow,
            1 => {}
            _ => return Made::Ambiguously,
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
        Made::Of { base, shown, further }
    }

    /// Returns how a list was made, or anything that is not made of pieces.
    fn parse_list(&self, read: &Value, is_possible: impl Fn(Base) -> bool) -> Made {
        let puts = self.puts.iter().map(|(&begin, same)| (begin, Base::Put(same[0])));
        let mut made = Made::Nohow;
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
                    Made::Nohow => made = Made::Of { base, shown: 0, further },
                    _ => return Made::Ambiguously,
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
