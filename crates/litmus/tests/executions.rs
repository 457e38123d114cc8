//! Tests of instruction sets and C under models on candidate executions.

use std::path::{Path, PathBuf};

use consistory_diagnostic::Style;
use consistory_litmus::{
    CatModel, CatSource, IsaError, IsaOptions, IsaOutcomes, IsaTest, Language, find_isa_model,
    isa_model_ids, isa_outcomes, read_isa_test,
};
use consistory_verdict::Budget;

fn options() -> IsaOptions {
    IsaOptions {
        unroll: 2,
        condition_only: false,
        count: false,
        keep_executions: false,
        budget: Budget::unlimited(),
    }
}

fn corpus() -> Vec<(PathBuf, String, IsaTest)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/executions");
    let mut tests = Vec::new();
    for folder in std::fs::read_dir(root).unwrap() {
        for file in std::fs::read_dir(folder.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let test = read(&text);
            tests.push((path, text, test));
        }
    }
    tests.sort_by(|a, b| a.0.cmp(&b.0));
    tests
}

fn read(text: &str) -> IsaTest {
    match read_isa_test("test.litmus", text) {
        Ok(test) => test,
        Err(diagnostics) => panic!("{}", diagnostics.render(Style::Plain)),
    }
}

/// Returns the models for a test's language.
fn models_of(path: &Path, test: &IsaTest) -> Vec<&'static str> {
    let own: &[&str] = match test.language {
        Language::X86 | Language::X86_64 => &["x86tso"],
        Language::AArch64 => &["aarch64"],
        Language::RiscV => &["riscv", "riscv-tso"],
        Language::Ppc => &["power"],
        Language::C | Language::LinuxC if path.to_string_lossy().contains("lkmm") => &["lkmm"],
        Language::C | Language::LinuxC => &["rc11"],
        Language::Lisa => &[],
    };
    isa_model_ids().filter(|id| *id == "sc" || own.contains(id)).collect()
}

/// A run may depend on an address that the thread itself wrote.
#[test]
fn an_address_is_found_in_what_the_thread_wrote_before() {
    let test = read(
        "AArch64 T\n{ uint64_t x=3; uint64_t y=5; 0:X1=x; 0:X2=y; }\n P0 ;\n STR X1,[X2] ;\n \
         LDR X5,[X2] ;\n LDR X6,[X5] ;\nlocations [0:X5; 0:X6;]",
    );
    for id in ["sc", "aarch64"] {
        let found = isa_outcomes(&test, &find_isa_model(id).unwrap(), &options()).unwrap();
        let states: Vec<_> = found.states.iter().map(|state| test.shown(state)).collect();
        assert_eq!(states.len(), 1, "{id}: {states:?}");
        assert_eq!(format!("{:?}", states[0]), r#"[("0:X5", Text("x")), ("0:X6", Number(3))]"#);
    }
}

/// An index counts elements, whatever their width.
#[test]
fn an_index_counts_elements() {
    let test = read(
        "AArch64 T\n{ uint16_t x[4]={1,2,3,4}; uint64_t y[2]={5,6}; 0:X0=x[2]; 0:X1=&y[1]; }\n \
         P0 ;\n LDRH W2,[X0] ;\n LDR X3,[X1] ;\nlocations [0:X2; 0:X3;]",
    );
    let found = isa_outcomes(&test, &find_isa_model("sc").unwrap(), &options()).unwrap();
    let states: Vec<_> = found.states.iter().map(|state| test.shown(state)).collect();
    assert_eq!(format!("{states:?}"), r#"[[("0:X2", Number(3)), ("0:X3", Number(6))]]"#);
}

/// A store exclusive may succeed at another address only with the variant, on the command line or
/// in the test.
#[test]
fn a_reservation_may_cover_a_region() {
    let text = |header: &str| {
        format!(
            "AArch64 T\n{header}{{ 0:X0=x; 0:X2=y; }}\n P0 ;\n LDXR W1,[X0] ;\n MOV W3,#1 ;\n \
             STXR W4,W3,[X2] ;\nexists (y=1)"
        )
    };
    let allows = |test: &IsaTest| {
        let model = find_isa_model("aarch64").unwrap();
        is_reachable(test, &isa_outcomes(test, &model, &options()).unwrap())
    };
    let mut test = read(&text(""));
    assert!(!allows(&test));
    test.apply_variant("lkmmv2");
    assert!(!allows(&test));
    test.apply_variant("ConstrainedUnpredictable");
    assert!(allows(&test));
    assert!(allows(&read(&text("Variant=mixed,CU\n"))));
}

/// A model that is interpreted orders the operations on a lock itself, so the search does not choose
/// the last one, unless the test asks for the lock's value.
#[test]
fn the_last_operation_on_a_lock_is_chosen_only_if_it_is_asked_for() {
    let text = |asked: &str| {
        let thread = |at: usize| {
            format!(
                "P{at}(int *x, spinlock_t *s) {{ spin_lock(s); WRITE_ONCE(*x, {}); \
                 spin_unlock(s); }}\n",
                at + 1
            )
        };
        format!("C T\n{{ }}\n{}{}locations [x;{asked}]", thread(0), thread(1))
    };
    let source = CatSource {
        name: "free.cat".to_owned(),
        text: "\"no check\"\nwith unused from {0, id}\n".to_owned(),
    };
    let model = CatModel::read(source, None, &[], &|_| None).unwrap();
    let run = |asked: &str| {
        let test = read(&text(asked));
        let found = isa_outcomes(&test, &model, &options()).unwrap();
        let last: std::collections::BTreeSet<String> =
            found.states.iter().map(|state| format!("{:?}", test.shown(state)[0])).collect();
        (last, found.candidates)
    };
    let ((few, candidates), (all, more)) = (run(""), run(" s;"));
    assert_eq!(few.len(), 2, "{few:?}");
    assert_eq!(few, all);
    assert!(candidates < more, "{candidates} and {more}");
}

fn is_reachable(test: &IsaTest, found: &IsaOutcomes) -> bool {
    found.states.iter().any(|state| test.satisfies(state))
}

#[test]
fn verdicts_are_as_expected() {
    let mut wrong = String::new();
    for (path, text, test) in corpus() {
        let allowed = text
            .lines()
            .find_map(|line| line.strip_prefix("Allowed="))
            .expect("each test has verdicts");
        for id in models_of(&path, &test) {
            let found = isa_outcomes(&test, &find_isa_model(id).unwrap(), &options()).unwrap();
            let expected = allowed.split(',').any(|name| name == id);
            assert!(!found.states.is_empty(), "{}: {id} allows nothing", path.display());
            if is_reachable(&test, &found) != expected {
                wrong += &format!("{}: {id}: expected {expected}\n", path.display());
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// An irrelevant choice causes a model to be interpreted on each execution, with coherence orders
/// from the model's own functions: an independent way to compute the same results.
#[test]
fn compiled_and_interpreted_models_agree() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/litmus");
    for (path, _, test) in corpus() {
        // Locks are separate events in an interpreted model.
        if path.ends_with("lkmm/locks.litmus") {
            continue;
        }
        for id in models_of(&path, &test) {
            let file = if id == "sc" { "sc-executions".to_owned() } else { id.to_owned() };
            let text = std::fs::read_to_string(folder.join(format!("{file}.cat"))).unwrap();
            let text = text + "\nwith unused from {0, id}\n";
            let source = CatSource { name: file, text };
            let interpreted = CatModel::read(source, None, &[], &|_| None).unwrap();
            let slow = isa_outcomes(&test, &interpreted, &options()).unwrap();
            let fast = isa_outcomes(&test, &find_isa_model(id).unwrap(), &options()).unwrap();
            assert_eq!(fast.states, slow.states, "{} {id}", path.display());
            assert_eq!(fast.flags, slow.flags, "{} {id}", path.display());
        }
    }
}

#[test]
fn the_condition_alone_is_decided_the_same() {
    for (path, _, test) in corpus() {
        for id in models_of(&path, &test) {
            let model = find_isa_model(id).unwrap();
            let all = isa_outcomes(&test, &model, &options()).unwrap();
            let only = IsaOptions { condition_only: true, ..options() };
            let some = isa_outcomes(&test, &model, &only).unwrap();
            assert_eq!(
                is_reachable(&test, &all),
                is_reachable(&test, &some),
                "{} {id}",
                path.display()
            );
            assert!(some.states.is_subset(&all.states));
        }
    }
}

/// Every outcome has an execution; in it each read takes the value of its source.
#[test]
fn every_outcome_has_an_execution() {
    let mut reads = 0;
    for (path, _, test) in corpus() {
        for id in models_of(&path, &test) {
            let model = find_isa_model(id).unwrap();
            let keep = IsaOptions { keep_executions: true, ..options() };
            let found = isa_outcomes(&test, &model, &keep).unwrap();
            assert!(found.executions.keys().eq(&found.states), "{} {id}", path.display());
            for execution in found.executions.values() {
                for &(from, to, relation) in &execution.edges {
                    let of = |event: usize| execution.events[event].label.as_str();
                    let place = |label: &str| label.split('=').next().map(str::to_owned);
                    let place = |label: &str| place(label.rsplit(' ').next().unwrap());
                    if relation == "rf" && of(to).starts_with('R') && !of(to).contains(',') {
                        let value = |label: &str| label.rsplit('=').next().map(str::to_owned);
                        let what = format!("{} {id}: {} {}", path.display(), of(from), of(to));
                        assert_eq!(place(of(from)), place(of(to)), "{what}");
                        if !of(from).contains(',') {
                            assert_eq!(value(of(from)), value(of(to)), "{what}");
                        }
                        reads += 1;
                    }
                }
            }
        }
    }
    assert!(reads > 100, "only {reads} reads");
}

/// Features of cat: titles, both comments, functions, recursion, sets of sets, choices.
#[test]
fn the_language_of_models() {
    let text = r#"
RISCV "A model" // a comment
# another (* and *) one
include "cos.cat"
procedure coherent(r) = acyclic r as loc-order end
call coherent(po-loc | rf | co | fr)
let twice(r, s) = (r ; s) | (s ; r)
let rec f x = match x with || {} -> 0 || e ++ rest -> f rest end
let none = f {}
let fences = try fencerel(MFENCE) with 0
let rec order = po | order ; order and other = emptyset
let shown = if "weird" then 0 else order
show shown as x, fences
unshow other
flag ~empty (twice(po, po) | fences) as two-steps
acyclic (order | rf | co | fr) \ none as sc
"#;
    let source = CatSource { name: "model.cat".to_owned(), text: text.to_owned() };
    let model = CatModel::read(source, None, &[], &|_| None).unwrap();
    assert_eq!(model.title, "A model");
    let sb = "RISCV SB\n{ 0:x6=x; 0:x8=y; 1:x6=y; 1:x8=x; }\n P0 | P1 ;\n ori x5,x0,1 | ori x5,x0,1 ;\n \
              sw x5,0(x6) | sw x5,0(x6) ;\n lw x7,0(x8) | lw x7,0(x8) ;\nexists (0:x7=0 /\\ 1:x7=0)";
    let found = isa_outcomes(&read(sb), &model, &options()).unwrap();
    assert_eq!(found.states.len(), 3);
    // With two accesses per thread there are no two consecutive steps of program order.
    assert!(found.flags.is_empty());
}

#[test]
fn errors_have_places() {
    let wrong = |text: &str| {
        let source = CatSource { name: "m.cat".to_owned(), text: text.to_owned() };
        let model = CatModel::read(source, None, &[], &|_| None);
        model.err().map(|diagnostics| diagnostics.render(Style::Plain))
    };
    for text in [
        "acyclic",
        "let x = (po | rf",
        "include \"nowhere.cat\"",
        "(* open",
        "let = po",
        "acyclic po as",
    ] {
        let message = wrong(text).unwrap_or_else(|| panic!("{text} was read"));
        assert!(message.contains("m.cat:1:"), "{message}");
    }
    let test = "AArch64 T\n{ 0:X1=x; }\n P0 ;\n LDR W0,[X1] ;\n FROB W0 ;\nexists (0:X0=0)";
    let message = read_isa_test("t.litmus", test).unwrap_err().render(Style::Plain);
    assert!(message.contains("t.litmus:5:2") && message.contains("FROB"), "{message}");
}

#[test]
fn loops_are_cut_and_said_to_be() {
    let text = "AArch64 spin\n{ 0:X1=x; 1:X1=x; }\n P0 | P1 ;\n L: | MOV W0,#1 ;\n LDR W0,[X1] | STR W0,[X1] ;\n \
                CBZ W0,L | ;\nforall (0:X0=1)";
    let test = read(text);
    let found = isa_outcomes(&test, &find_isa_model("aarch64").unwrap(), &options()).unwrap();
    assert!(found.cut);
    assert!(found.states.iter().all(|state| test.satisfies(state)));
}

#[test]
fn a_condition_is_answered_by_its_quantifier() {
    let store_buffering = |condition: &str| {
        read(&format!(
            "X86 SB\n{{ x=0; y=0; }}\n P0          | P1          ;\n MOV [x],$1  | MOV [y],$1  ;\n \
             MOV EAX,[y] | MOV EAX,[x] ;\n{condition}\n"
        ))
    };
    let both_old = "(0:EAX=0 /\\ 1:EAX=0)";
    let not_both_old = "(not (0:EAX=0 /\\ 1:EAX=0))";
    for (condition, in_sc, in_tso) in [
        (format!("exists {both_old}"), false, true),
        (format!("~exists {both_old}"), true, false),
        (format!("forall {both_old}"), false, false),
        (format!("forall {not_both_old}"), true, false),
        (format!("exists {not_both_old}"), true, true),
        ("forall (0:EAX=0 \\/ 0:EAX=1)".to_owned(), true, true),
    ] {
        let test = store_buffering(&condition);
        for (model, expected) in [("sc", in_sc), ("x86tso", in_tso)] {
            let found = isa_outcomes(&test, &find_isa_model(model).unwrap(), &options()).unwrap();
            assert_eq!(test.is_answered(&found), expected, "{condition} in {model}");
        }
    }
}

fn model(text: &str) -> CatModel {
    let source = CatSource { name: "model.cat".to_owned(), text: text.to_owned() };
    match CatModel::read(source, None, &[], &|_| None) {
        Ok(model) => model,
        Err(diagnostics) => panic!("{}", diagnostics.render(Style::Plain)),
    }
}

/// An atomic update of RISC-V is one event, a load and a store at once, so a fence that orders
/// earlier loads orders the update.
#[test]
fn updates_of_riscv_are_one_event() {
    let sb = "RISCV SB+amo+fence.tso\n{ 0:x6=x; 0:x8=y; 1:x6=y; 1:x8=x; }\n P0 | P1 ;\n \
              li x5,1 | li x5,1 ;\n amoswap.w x7,x5,(x6) | amoswap.w x7,x5,(x6) ;\n \
              fence.tso | fence.tso ;\n lw x9,0(x8) | lw x9,0(x8) ;\n\
              exists (0:x7=0 /\\ 0:x9=0 /\\ 1:x7=0 /\\ 1:x9=0)";
    let own = model(
        "RISCV \"own\"\ninclude \"cos.cat\"\n\
         let fence = let f = fencerel(Fence.tso) in ([W];f;[W]) | ([R];f;[M])\n\
         let AMO = X and pair = rmw\nacyclic co|rf|fr|po-loc\nempty rmw & (fre;coe)\n\
         acyclic co | rfe | fr | fence | [AMO];rfi | pair",
    );
    let test = read(sb);
    assert!(!is_reachable(&test, &isa_outcomes(&test, &own, &options()).unwrap()));
    for id in ["riscv", "riscv-tso", "sc"] {
        let found = isa_outcomes(&test, &find_isa_model(id).unwrap(), &options()).unwrap();
        assert!(!is_reachable(&test, &found), "{id}");
    }
    // Without the fence RVWMO lets the load pass the update; Ztso does not.
    let test = read(&sb.replace(" fence.tso | fence.tso ;\n", ""));
    for (id, expected) in [("riscv", true), ("riscv-tso", false)] {
        let found = isa_outcomes(&test, &find_isa_model(id).unwrap(), &options()).unwrap();
        assert_eq!(is_reachable(&test, &found), expected, "{id}");
    }
}

/// A definition with an unknown name is an error if it is used, with the place of the name, and no
/// error otherwise.
#[test]
fn unknown_names_matter_where_they_are_used() {
    let text =
        "include \"cos.cat\"\nlet shown = SomeOtherMachine ; po\nacyclic po | rf | fr | co\n";
    let sb = "X86 SB\n{}\n P0 | P1 ;\n MOV [x],$1 | MOV [y],$1 ;\n MOV EAX,[y] | MOV EAX,[x] ;\n\
              exists (0:EAX=0 /\\ 1:EAX=0)";
    let test = read(sb);
    assert_eq!(isa_outcomes(&test, &model(text), &options()).unwrap().states.len(), 3);
    let used = format!("{text}acyclic shown\n");
    let error = isa_outcomes(&test, &model(&used), &options()).unwrap_err();
    let IsaError::Model(diagnostics) = error else { panic!("{error:?}") };
    let message = diagnostics.render(Style::Plain);
    assert!(message.contains("model.cat:2:") && message.contains("SomeOtherMachine"), "{message}");
}

/// Models of Power and ARM define the bases of preserved program order and include the rest.
#[test]
fn the_files_that_power_includes_are_built_in() {
    let own = model(
        "PPC\ninclude \"cos.cat\"\nacyclic po-loc | rf | fr | co as scperlocation\n\
         empty rmw & (fre;coe) as atomic\nlet dd = addr | data\nlet rdw = po-loc & (fre;rfe)\n\
         let detour = po-loc & (coe ; rfe)\ninclude \"ppcfences.cat\"\nlet ci0 = ctrlisync | detour\n\
         let ii0 = dd | rfi | rdw\nlet cc0 = dd | po-loc | ctrl | (addr;po)\nlet ic0 = 0\n\
         include \"ppo.cat\"\nlet lwsync = lwsync \\ (W * R)\nlet eieio = eieio & (W * W)\n\
         let strong = sync\nlet light = lwsync|eieio\ninclude \"ppc-checks.cat\"\n",
    );
    let mut compared = 0;
    for (path, _, test) in corpus() {
        if test.language == Language::Ppc {
            let ours = isa_outcomes(&test, &find_isa_model("power").unwrap(), &options()).unwrap();
            let found = isa_outcomes(&test, &own, &options()).unwrap();
            assert_eq!(ours.states, found.states, "{}", path.display());
            compared += 1;
        }
    }
    assert!(compared > 3);
}

/// Models of AArch64 that use translation tables and caches, choose orders of events that do not
/// occur, and take dependencies from a separate file.
#[test]
fn models_of_aarch64_may_speak_of_more_than_user_level() {
    let own = model(
        "catdep\ninclude \"aarch64deps.cat\"\nlet Imp = NExp\nlet IC = IC.IVAU | IC.IALLU\n\
         let tr-ib = [Imp & TTD & R]; iico_data; [B]; iico_ctrl; [Exp & M | MMU & FAULT]\n\
         let rec both (rs, wts) = match wts with || {} -> rs || wt ++ wts -> \
         both ((map (fun r -> (wt ++ 0 | r))) rs, wts) end\n\
         let pairs = loc & (DC.CVAU * (Exp & W))\n\
         with DC-after from (both ({pairs & po}, pairs \\ po))\n\
         let full = DMB.SY | DSB.SY\nlet kept = addr | data | ctrl; [W] | (addr | data); lrs \
         | (ctrl | addr; po); [ISB]; po; [R] | addr; po; [W] | lws | rmw | rmw; lrs; [A | Q] \
         | po; [full]; po | [R \\ NoRet]; po; [DMB.LD]; po | [W]; po; [DMB.ST]; po; [W] \
         | [range([A];amo;[L])]; po | [L]; po; [A] | [A | Q]; po | po; [L] | tr-ib | iico_order\n\
         let ob = (kept | rfe | fre | coe | DC-after)+\nirreflexive ob as external\n\
         acyclic po-loc | rf | fr | co as internal\nempty rmw & (fre;coe) as atomic\n\
         flag ~empty ([TLBI]; po; [EXC-ENTRY]) as never\n",
    );
    let mut compared = 0;
    for (path, text, test) in corpus() {
        // Dependencies through a choice inside an instruction are excluded above.
        if test.language == Language::AArch64 && !text.contains("CSEL") && !text.contains("CAS") {
            let ours =
                isa_outcomes(&test, &find_isa_model("aarch64").unwrap(), &options()).unwrap();
            let found = isa_outcomes(&test, &own, &options()).unwrap();
            assert_eq!(ours.states, found.states, "{}", path.display());
            assert!(found.flags.is_empty());
            compared += 1;
        }
    }
    assert!(compared > 5);
}

/// Two threads may take their branches because of each other, if the model permits it.
#[test]
fn branches_may_justify_each_other() {
    let lb = "C LB+ctrls\n{}\nP0 (atomic_int* x, atomic_int* y) {\n\
              int r0 = atomic_load_explicit(x, memory_order_relaxed);\n\
              if (r0) { atomic_store_explicit(y, 1, memory_order_relaxed); }\n}\n\
              P1 (atomic_int* x, atomic_int* y) {\n\
              int r1 = atomic_load_explicit(y, memory_order_relaxed);\n\
              if (r1) { atomic_store_explicit(x, 1, memory_order_relaxed); }\n}\n\
              exists (0:r0=1 /\\ 1:r1=1)";
    let test = read(lb);
    let lax = model("include \"cos.cat\"\nacyclic po-loc | rf | fr | co");
    let found = isa_outcomes(&test, &lax, &options()).unwrap();
    assert_eq!(found.states.len(), 2);
    assert!(is_reachable(&test, &found));
    let found = isa_outcomes(&test, &find_isa_model("rc11").unwrap(), &options()).unwrap();
    assert_eq!(found.states.len(), 1);
}

/// The kernel's bell file has changed the case of its tags; both spellings mean the same.
#[test]
fn bell_files_spell_tags_in_either_case() {
    let bell = |tags: &str| CatSource { name: "m.bell".to_owned(), text: tags.to_owned() };
    let text = |once: &str, mb: &str| CatSource {
        name: "m.cat".to_owned(),
        text: format!(
            "include \"cos.cat\"\nacyclic po-loc | rf | fr | co\nlet Marked = {once}\n\
             flag ~empty Marked as marked\nacyclic fencerel({mb}) | rf | fr | co"
        ),
    };
    let lower = CatModel::read(
        text("Once", "Mb"),
        Some(bell("enum Accesses = 'once\nenum Barriers = 'mb")),
        &[],
        &|_| None,
    );
    let upper = CatModel::read(
        text("ONCE", "MB"),
        Some(bell("enum Accesses = 'ONCE\nenum Barriers = 'MB")),
        &[],
        &|_| None,
    );
    let sb = "C SB+mbs\n{}\nP0(int *x, int *y) { int r0; WRITE_ONCE(*x, 1); smp_mb(); r0 = READ_ONCE(*y); }\n\
              P1(int *x, int *y) { int r1; WRITE_ONCE(*y, 1); smp_mb(); r1 = READ_ONCE(*x); }\n\
              exists (0:r0=0 /\\ 1:r1=0)";
    let test = read(sb);
    for model in [lower, upper] {
        let found = isa_outcomes(&test, &model.unwrap(), &options()).unwrap();
        assert_eq!(found.states.len(), 3);
        assert!(found.flags.contains("marked"));
    }
}
