//! Models of every family, and the rule of the checker for each.
//!
//! A family is a variant of [`Model`] and a module that judges histories, checks certificates and
//! shrinks violations for this family: `registers`, `objects`, `transactions`. The rest of this
//! crate is the same for all families.

use std::fmt;
use std::sync::Arc;

use consistory_history::History;
use consistory_models::Definition;
use consistory_spec::ObjectModel;
use consistory_verdict::{
    ClientOrder, Family, Judgement, Level, Options, Proof, Ruling, Stopped, Verdict as Outcome,
};

use crate::court::Settings;
use crate::objects::NamedObject;
use crate::{Error, objects, registers, select, transactions};

/// A consistency model.
#[derive(Clone, Debug)]
pub enum Model {
    /// A model of reads and writes.
    Register(consistory_registers::Model),
    /// A model of an object's calls.
    Object {
        /// The object.
        object: NamedObject,
        /// The axioms.
        model: ObjectModel,
    },
    /// An isolation level of transactions.
    Isolation {
        /// The level.
        level: Level,
        /// The order that the clients observed.
        order: ClientOrder,
    },
    /// A user's definition about transactions.
    OwnLevel {
        /// The id in reports: the path of the file.
        id: Arc<str>,
        /// The definition.
        definition: Arc<Definition>,
        /// The order that the clients observed.
        order: ClientOrder,
    },
}

impl Model {
    /// Finds a model of registers by its id, in any case, or by the path of its definition file.
    pub fn register(id: &str) -> Result<Model, Error> {
        Ok(Model::Register(select::register_model(id)?))
    }

    /// Returns the model with the order that the clients observed; only models of transactions have
    /// one.
    #[must_use]
    pub fn ordered(self, order: ClientOrder) -> Model {
        match self {
            Model::Register(consistory_registers::Model::Own { id, definition })
                if definition.is_transactional() =>
            {
                Model::OwnLevel { id, definition, order }
            }
            Model::Isolation { level, .. } => Model::Isolation { level, order },
            Model::OwnLevel { id, definition, .. } => Model::OwnLevel { id, definition, order },
            other => other,
        }
    }

    /// Finds an isolation level by its id, in any case.
    pub fn isolation(id: &str, order: ClientOrder) -> Option<Model> {
        Level::find(id).map(|level| Model::Isolation { level, order })
    }

    /// Finds a model of an object: a named one, levels, or axioms.
    pub fn of_object(object: NamedObject, text: &str) -> Result<Model, Error> {
        let model = ObjectModel::parse("model", text)?;
        Ok(Model::Object { object, model })
    }

    /// Returns the id that reports use.
    pub fn id(&self) -> &str {
        match self {
            Model::Register(model) => model.id(),
            Model::Object { model, .. } => &model.id,
            Model::Isolation { level, .. } => level.id(),
            Model::OwnLevel { id, .. } => id,
        }
    }

    /// Returns the family of the model.
    pub fn family(&self) -> Family {
        match self {
            Model::Register(_) => Family::Registers,
            Model::Object { .. } => Family::Objects,
            Model::Isolation { .. } | Model::OwnLevel { .. } => Family::Transactions,
        }
    }

    /// Returns the family of the model's proofs: user definitions of all families have proofs of
    /// the same form.
    pub fn family_of_proofs(&self) -> Family {
        match self {
            Model::OwnLevel { .. } => Family::Registers,
            other => other.family(),
        }
    }

    /// Checks, with the independent checker, the proof that a history satisfies or violates this
    /// model.
    ///
    /// `via` is the model that the proof is about, if a weaker or stronger one settles this one.
    pub fn accept(
        &self,
        history: &History,
        via: Option<&str>,
        claim: Outcome,
        proof: &Proof,
        options: &Options,
    ) -> Result<(), Rejection> {
        match (self, proof) {
            (Model::Register(model), Proof::Registers(certificate)) => {
                registers::accept(history, model, via, claim, certificate, options)
            }
            (Model::Object { object, model }, Proof::Object(certificate)) => {
                let budget = &options.budget;
                objects::accept(history, &**object.object(), model, via, claim, certificate, budget)
            }
            (Model::OwnLevel { definition, order, .. }, Proof::Registers(certificate)) => {
                if let Some(via) = via {
                    let reason = format!("a verdict on {via} does not settle {}", self.id());
                    return Err(Rejection::Unproved { reason });
                }
                let budget = &options.budget;
                registers::accept_level(history, definition, *order, claim, certificate, budget)
            }
            (Model::Isolation { level, order }, Proof::Transactions(certificate)) => {
                transactions::accept(
                    history,
                    *level,
                    *order,
                    via,
                    claim,
                    certificate,
                    &options.budget,
                )
            }
            _ => {
                let reason = format!("a {} does not prove anything about it", proof.kind());
                Err(Rejection::Unproved { reason })
            }
        }
    }

    /// Checks the proof of a ruling; an undecided one needs none.
    pub(crate) fn accept_ruling(
        &self,
        history: &History,
        ruling: &Ruling,
        options: &Options,
    ) -> Result<(), Rejection> {
        let Ruling { judgement, via, .. } = ruling;
        match judgement.certificate() {
            Some(proof) => self.accept(history, *via, judgement.verdict(), proof, options),
            None => Ok(()),
        }
    }

    /// Returns the model that a shrunk history must violate. For an object this is the model of the
    /// proof, from which shrinking starts.
    pub(crate) fn of_proof(&self, via: Option<&str>) -> Model {
        match (self, via.and_then(ObjectModel::named)) {
            (Model::Object { object, .. }, Some(weaker)) => {
                Model::Object { object: object.clone(), model: weaker }
            }
            _ => self.clone(),
        }
    }

    /// Shrinks a history that violates the model.
    pub(crate) fn shrink(
        &self,
        history: &History,
        violation: &Judgement,
        settings: &Settings,
    ) -> Result<(History, Minimal), Error> {
        match self {
            Model::Register(model) => {
                Ok(registers::shrink(history, model, violation, &settings.register_options(1)))
            }
            Model::Object { object, model } => objects::shrink(
                history,
                object,
                model,
                violation,
                &settings.object_options(settings.jobs),
            ),
            Model::OwnLevel { id, definition, .. } => {
                let (id, definition) = (id.clone(), definition.clone());
                let model = consistory_registers::Model::Own { id, definition };
                Ok(registers::shrink(history, &model, violation, &settings.register_options(1)))
            }
            Model::Isolation { level, order } => {
                Ok(transactions::shrink(history, *level, *order, violation, &settings.budget()))
            }
        }
    }
}

/// Whether a shrunk history is known to be minimal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Minimal {
    Yes,
    /// It is unknown, because the budget ran out.
    Unknown,
}

/// Reason why a proof was not accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rejection {
    /// The proof does not establish its claim.
    Unproved {
        /// Part of the proof that fails, with the reason.
        reason: String,
    },
    /// The checker stopped before it was finished.
    Stopped(Stopped),
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejection::Unproved { reason } => f.write_str(reason),
            Rejection::Stopped(stopped) => write!(f, "{stopped}"),
        }
    }
}
