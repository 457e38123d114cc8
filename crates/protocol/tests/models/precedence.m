-- expect: states 5, fired 8, depth 4, reduced 5
-- `!a = b` is `!(a = b)`, `->` is weaker than `|`, `|` than `&`, and arithmetic binds strongest.
type T: 0..5;
var a, b: boolean; x: T;
startstate begin a := false; b := false; x := 0; end;
-- !(a = b) is false at first; (!a) = b is false too, but not when both change.
rule "flip both" !a = b ==> x := 5; end;
rule "next" a = b & x < 2 ==> b := x = 1; x := x + 1; end;
rule "sum" x = 2 ==> x := (1 + 2 * 2 - 7 % 4) + 1; end;
rule "reset" x >= 3 ==> x := 0; a := false; b := false; end;
invariant "implication" a = b | a & b -> x <= 3;
