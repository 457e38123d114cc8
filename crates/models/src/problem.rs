//! The errors of a definition.

use consistory_definition::Kind;

/// An error of a definition.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Problem {
    /// A character that the language does not use.
    #[error("unexpected character `{found}`")]
    UnexpectedCharacter {
        /// The character.
        found: char,
    },
    /// A comment `(*` without its `*)`.
    #[error("this comment never ends")]
    UnterminatedComment,
    /// A string without its closing quote on the same line.
    #[error("this string never ends")]
    UnterminatedString,
    /// Unexpected text.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// Description of the expected text.
        expected: &'static str,
        /// Description of the text found.
        found: String,
    },
    /// Expressions nested too deeply.
    #[error("nested too deeply")]
    NestedTooDeeply,
    /// A text that is too long.
    #[error("the definition is longer than {limit} bytes")]
    TooLong {
        /// Largest length in bytes.
        limit: usize,
    },
    /// An undefined name.
    #[error("undefined name `{name}`")]
    UndefinedName {
        /// The name.
        name: String,
    },
    /// A name that is not a function but is applied to arguments.
    #[error("`{name}` is not a function")]
    NotAFunction {
        /// The name.
        name: String,
    },
    /// A function without its arguments.
    #[error("the function `{name}` needs arguments")]
    MissingArguments {
        /// The function.
        name: String,
    },
    /// A function with too few or too many arguments.
    #[error("`{name}` takes {expected} argument(s), found {found}")]
    WrongArity {
        /// The function.
        name: String,
        /// Expected number.
        expected: usize,
        /// Given number.
        found: usize,
    },
    /// A set where a relation is needed, or the other way round.
    #[error("expected {expected}, found {found}")]
    WrongKind {
        /// The needed kind.
        expected: Kind,
        /// The kind found.
        found: Kind,
    },
    /// A recursion that need not have a least solution.
    #[error("`{name}` is defined by recursion through a complement or the right side of `\\`")]
    NonMonotone {
        /// The recursive name.
        name: String,
    },
    /// A function defined by `let rec`.
    #[error("a function cannot be recursive")]
    RecursiveFunction,
    /// A parameter or name bound twice at once.
    #[error("`{name}` is bound twice")]
    BoundTwice {
        /// The name.
        name: String,
    },
    /// A file that includes itself.
    #[error("`{path}` includes itself")]
    CyclicInclude {
        /// The included file.
        path: String,
    },
    /// An included file that cannot be found.
    #[error("cannot find `{path}` to include")]
    UnknownInclude {
        /// The included file.
        path: String,
    },
    /// An unknown key of a metadata line.
    #[error("unknown metadata `@{key}`")]
    UnknownMetadata {
        /// The key.
        key: String,
    },
    /// An `@implies` line whose kind of evidence cannot be read.
    #[error("expected a model's id and how the implication is known")]
    BadImplication,
    /// A store order declared more than once.
    #[error("the store order is declared twice")]
    SecondStoreOrder,
    /// Total orders declared more than once.
    #[error("there is a memory order or the threads' views already")]
    SecondTotalOrder,
    /// A statement that is not allowed inside `forall`.
    #[error("only `let` and checks can stand inside `forall`")]
    MisplacedInForall,
    /// A definition without a check.
    #[error("the definition checks nothing")]
    NoChecks,
}
