//! Errors of a `.litmus` file are reported with their positions.

use consistory_litmus::read_test;
use expect_test::{Expect, expect};

fn check(text: &str, expected: Expect) {
    let diagnostics = read_test("t.litmus", text).expect_err("the test is wrong");
    expected.assert_eq(&diagnostics.to_string());
}

#[test]
fn every_error_has_a_place() {
    check(
        "",
        expect![[r#"
        t.litmus:1:1: a litmus test needs initial values in braces (write `{ x=0; y=0; }`, or `{ }`, behind the test's name)
        t.litmus: 1 error"#]],
    );
    check(
        "X86 SB\n",
        expect![[r#"
        t.litmus:1:1: a litmus test needs initial values in braces (write `{ x=0; y=0; }`, or `{ }`, behind the test's name)
        t.litmus: 1 error"#]],
    );
    check(
        "ARM SB\n{ }\n P0 ;\n",
        expect![[r#"
        t.litmus:1:1: the architecture `ARM` is not supported (X86 and LISA are)
        t.litmus: 1 error"#]],
    );
    check(
        "X86 SB\n{ x=0; y=z w; 3:EAX=1; }\n P0          | P1          ;\n MOV [x],$1  | MOW [y],$1  ;\n MOV EAX,[y] | PAUSE ;\nexists (0:EAX=0 /\\ 7:EAX=0)\n",
        expect![[r#"
            t.litmus:2:8: this is no initial value (write `x=1` for a location and `0:EAX=1` for a register)
            t.litmus:2:25: there is no thread 3 for register EAX
            t.litmus:4:16: the instruction `MOW [y],$1` is not supported (there are MOV, MFENCE, LFENCE, SFENCE, XCHG, XADD, CMPXCHG, INC, DEC, ADD, SUB, XOR, AND, OR with and without LOCK, CMP, JMP and JE, JNE, JL, JLE, JG, JGE)
            t.litmus:5:16: the instruction `PAUSE` is not supported (there are MOV, MFENCE, LFENCE, SFENCE, XCHG, XADD, CMPXCHG, INC, DEC, ADD, SUB, XOR, AND, OR with and without LOCK, CMP, JMP and JE, JNE, JL, JLE, JG, JGE)
            t.litmus:6:20: there is no thread 7
            t.litmus: 5 errors"#]],
    );
    check(
        "X86 SB\n{ }\n P0 | P2 ;\n JNE L | L: ;\n L: | JMP L ;\nexists (0:EAX= /\\)\n",
        expect![[r#"
            t.litmus:3:7: expected `P1`, found `P2`
            t.litmus:5:11: `L` is before the jump: loops are not supported (unroll the loop)
            t.litmus:6:16: expected a number, found `/\`
            t.litmus: 3 errors"#]],
    );
    check(
        "LISA A\n{ x=0 }\n P0 ;\n r[] r1 r2 ;\n w[] x+r1 1 ;\n call[] f ;\nforall (x=1\n",
        expect![[r#"
            t.litmus:4:2: the instruction `r[] r1 r2` is not supported (there are `r[] r1 x`, `w[] x 1`, `f[]`, `rmw[] r1 1 x`, `mov r1 (add r2 1)` and `b[] r1 L`)
            t.litmus:5:2: the instruction `w[] x+r1 1` is not supported (there are `r[] r1 x`, `w[] x 1`, `f[]`, `rmw[] r1 1 x`, `mov r1 (add r2 1)` and `b[] r1 L`)
            t.litmus:6:2: the instruction `call[] f` is not supported (there are `r[] r1 x`, `w[] x 1`, `f[]`, `rmw[] r1 1 x`, `mov r1 (add r2 1)` and `b[] r1 L`)
            t.litmus:8:1: expected `)`, found the end of the file
            t.litmus: 4 errors"#]],
    );
    check(
        "LISA A\n{ }\n P0 ;\n w[] x 1 | r[] r1 x ;\n (* open\n",
        expect![[r#"
            t.litmus:4:12: there is no thread for column 2
            t.litmus:5:2: this comment never ends
            t.litmus: 2 errors"#]],
    );
    check(
        &format!("LISA A\n{{ }}\n P0 ;\n w[] x 1 ;\nexists {}x=1", "(".repeat(500)),
        expect![[r#"
            t.litmus:5:108: nested too deeply
            t.litmus: 1 error"#]],
    );
}
