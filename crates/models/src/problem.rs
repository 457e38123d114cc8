//! What can be wrong with a definition.

use consistory_definition::Kind;

/// What can be wrong with a definition.
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
    /// Something else should stand here.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What should stand here.
        expected: &'static str,
        /// What does.
        found: String,
    },
    /// Expressions are nested beyond any need.
    #[error("nested too deeply")]
    NestedTooDeeply,
    /// The text is longer than any definition.
    #[error("the definition is longer than {limit} bytes")]
    TooLong {
        /// How long it may be.
        limit: usize,
    },
    /// Nothing has that name.
    #[error("undefined name `{name}`")]
    UndefinedName {
        /// The name.
        name: String,
    },
    /// A name that is not a function's is applied to arguments.
    #[error("`{name}` is not a function")]
    NotAFunction {
        /// The name.
        name: String,
    },
    /// A function stands without its arguments.
    #[error("the function `{name}` needs arguments")]
    MissingArguments {
        /// The function.
        name: String,
    },
    /// A function has too few or too many arguments.
    #[error("`{name}` takes {expected} argument(s), found {found}")]
    WrongArity {
        /// The function.
        name: String,
        /// The expected number.
        expected: usize,
        /// The given number.
        found: usize,
    },
    /// A set where a relation is needed, or the other way round.
    #[error("expected {expected}, found {found}")]
    WrongKind {
        /// What is needed.
        expected: Kind,
        /// What stands there.
        found: Kind,
    },
    /// A least solution need not exist.
    #[error("`{name}` is defined by recursion through a complement or the right side of `\\`")]
    NonMonotone {
        /// The recursive name.
        name: String,
    },
    /// A function is defined by `let rec`.
    #[error("a function cannot be recursive")]
    RecursiveFunction,
    /// A parameter or name is bound twice at once.
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
    /// A key of a metadata line that means nothing.
    #[error("unknown metadata `@{key}`")]
    UnknownMetadata {
        /// The key.
        key: String,
    },
    /// An `@implies` line whose standing cannot be read.
    #[error("expected a model's id and how the implication is known")]
    BadImplication,
    /// The store order is declared more than once.
    #[error("the store order is declared twice")]
    SecondStoreOrder,
    /// Total orders are declared more than once.
    #[error("there is a memory order or the threads' views already")]
    SecondTotalOrder,
    /// A statement that cannot stand inside `forall`.
    #[error("only `let` and checks can stand inside `forall`")]
    MisplacedInForall,
    /// A definition that checks nothing.
    #[error("the definition checks nothing")]
    NoChecks,
}
