//! The built-in files that models include.
//!
//! The texts are written for this project and define the names of herd's files of the same name.

/// Names that every model has.
pub(crate) const STANDARD: &str = r#"
let emptyset = domain(0)
let po-loc = po & loc
let rfe = rf & ext
let rfi = rf & int
let fencerel(S) = po ; [S] ; po
let ctrlcfence(S) = ctrl ; [S] ; po
let toid(S) = [S]
let singlestep(r) = r \ (r ; r)
let nodetour(r1, r2, r3) = r1 \ (r2 ; r3)
let udr(r) = r | r^-1
let imply(a, b) = ~a | b
let noid(r) = r \ id
let same-oa(r) = 0
let oa-changes(S, r) = emptyset
let at-least-one-writable(S, r) = emptyset
"#;

/// Coherence: a total order of the writes to each location, and derived relations.
const COHERENCE: &str = r#"
with co from generate_cos(co0)
let coi = co & int
let coe = co & ext
let invrf = rf^-1
let fr = (invrf ; co) \ id
let fri = fr & int
let fre = fr & ext
let ca = fr | co
"#;

const FILTERS: &str = r#"
let WW(r) = r & (W * W)
let WR(r) = r & (W * R)
let RW(r) = r & (R * W)
let RR(r) = r & (R * R)
let RM(r) = r & (R * M)
let MR(r) = r & (M * R)
let WM(r) = r & (W * M)
let MW(r) = r & (M * W)
let MM(r) = r & (M * M)
let At = (try X with emptyset) | (try A with emptyset)
let Pl = M \ At
let AA(r) = r & (At * At)
let AP(r) = r & (At * Pl)
let PA(r) = r & (Pl * At)
let PP(r) = r & (Pl * Pl)
let AM(r) = r & (At * M)
let MA(r) = r & (M * At)
let atom = [At]
"#;

const X86_FENCES: &str = r#"
let mfence = try fencerel(MFENCE) with 0
let lfence = try fencerel(LFENCE) with 0
let sfence = try fencerel(SFENCE) with 0
"#;

const PPC_FENCES: &str = r#"
let sync = try fencerel(SYNC) with 0
let lwsync = try fencerel(LWSYNC) with 0
let eieio = try fencerel(EIEIO) with 0
let isync = try fencerel(ISYNC) with 0
let ctrlisync = try ctrlcfence(ISYNC) with 0
"#;

const ARM_FENCES: &str = r#"
let dmb = try fencerel(DMB) with 0
let dmb.st = try fencerel(DMB.ST) with 0
let dsb = try fencerel(DSB) with 0
let dsb.st = try fencerel(DSB.ST) with 0
let isb = try fencerel(ISB) with 0
let ctrlisb = try ctrlcfence(ISB) with 0
"#;

const AARCH64_FENCES: &str = r#"
let dmb.ish = try fencerel(DMB.ISH) with 0
let dmb.ishld = try fencerel(DMB.ISHLD) with 0
let dmb.ishst = try fencerel(DMB.ISHST) with 0
let dmb.osh = try fencerel(DMB.OSH) with 0
let dmb.oshld = try fencerel(DMB.OSHLD) with 0
let dmb.oshst = try fencerel(DMB.OSHST) with 0
let dmb.sy = try fencerel(DMB.SY) with 0
let dmb.ld = try fencerel(DMB.LD) with 0
let dmb.st = try fencerel(DMB.ST) with 0
let dmb.fullsy = try fencerel(DMB.SY) with 0
let dmb.fullld = try fencerel(DMB.LD) with 0
let dmb.fullst = try fencerel(DMB.ST) with 0
let dsb.sy = try fencerel(DSB.SY) with 0
let dsb.ld = try fencerel(DSB.LD) with 0
let dsb.st = try fencerel(DSB.ST) with 0
let isb = try fencerel(ISB) with 0
let ctrlisb = try ctrlcfence(ISB) with 0
"#;

/// Preserved program order of *Herding cats* (Alglave, Maranget, Tautschnig, 2014): an access has a
/// start and an end, and four relations order these. A model defines the base of each (`ii0`,
/// `ic0`, `ci0`, `cc0`); the least solution is closed under composition at the same point, and
/// under "an access starts before it ends".
const HERDING_CATS_PPO: &str = r#"
let rec ii = ii0 | ci | (ic ; ci) | (ii ; ii)
and ic = ic0 | ii | cc | (ic ; cc) | (ii ; ic)
and ci = ci0 | (ci ; ii) | (cc ; ci)
and cc = cc0 | ci | (ci ; ic) | (cc ; cc)
let ppo = ([R] ; ii ; [R]) | ([R] ; ic ; [W])
"#;

/// Axioms of the same paper, for a model that defines `ppo`, `strong` and `light`.
const HERDING_CATS_AXIOMS: &str = r#"
let fence = strong | light
let hb = ppo | fence | rfe
acyclic hb as thinair
let hbstar = hb*
let propbase = rfe? ; fence ; hbstar
let chapo = rfe | fre | coe | (fre ; rfe) | (coe ; rfe)
let prop = ([W] ; propbase ; [W]) | (chapo? ; propbase* ; strong ; hbstar)
acyclic co | prop as propagation
irreflexive fre ; prop ; hbstar as observation
let xx = [EX] ; po ; [EX]
acyclic co | xx as scXX
"#;

/// Dependencies of AArch64: the reader of tests determines `addr`, `data`, `ctrl` and the
/// dependencies through a choice, so that only dependencies through memory are computed here.
/// Versions of the model have different names for the accesses that follow a write of their thread.
const AARCH64_DEPENDENCIES: &str = r#"
include "aarch64util.cat"
let follows = try (po & same-loc) with po-loc
let lws = [M] ; follows ; [W]
let lmws = lws
let lwfs = lws
let lrs = ([W] ; follows ; [R]) \ (follows ; [W] ; follows)
let lmrs = lrs
let pick-basic-dep = [R] ; (pick-addr-dep | pick-data-dep | iico_data | iico_ctrl | lrs)*
let pick-addr-dep = pick-basic-dep ; pick-addr-dep
let pick-data-dep = pick-basic-dep ; pick-data-dep
let pick-ctrl-dep = pick-basic-dep ; pick-ctrl-dep
let pick-dep = (pick-basic-dep | pick-addr-dep | pick-data-dep | pick-ctrl-dep) \ same-instance
"#;

/// Names used by the dependencies of AArch64, for a model without a file of that name.
const AARCH64_UTILITIES: &str = r#"
include "cos.cat"
include "aarch64fences.cat"
let same-loc = loc
"#;

/// Returns the text of a file that is always replaced, even if the user has one: the search chooses
/// coherence, and the reader of tests determines dependencies.
pub(crate) fn always(name: &str) -> Option<&'static str> {
    match name.rsplit('/').next().unwrap_or(name) {
        "stdlib.cat" | "cross.cat" | "cos-opt-names.cat" => Some(""),
        "cos.cat" | "cos-opt.cat" | "cos-no-opt.cat" | "cos-ok-opt.cat" => Some(COHERENCE),
        "aarch64deps.cat" => Some(AARCH64_DEPENDENCIES),
        _ => None,
    }
}

/// Returns the text of a file that is used if the user has none.
pub(crate) fn find(name: &str) -> Option<&'static str> {
    Some(match name {
        "filters.cat" => FILTERS,
        "x86fences.cat" => X86_FENCES,
        "ppcfences.cat" => PPC_FENCES,
        "armfences.cat" => ARM_FENCES,
        "aarch64fences.cat" => AARCH64_FENCES,
        "aarch64util.cat" => AARCH64_UTILITIES,
        "ppo.cat" => HERDING_CATS_PPO,
        "ppc-checks.cat" => HERDING_CATS_AXIOMS,
        "fences.cat" => concat!(
            "include \"x86fences.cat\" include \"ppcfences.cat\" include \"armfences.cat\" ",
            "include \"aarch64fences.cat\""
        ),
        _ => return None,
    })
}
