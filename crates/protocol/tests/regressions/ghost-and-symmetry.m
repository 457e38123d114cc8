-- expect: violation
-- A variable that is left out of tracking, beside a scalarset of processors.
--@ data V
type P: scalarset(3); V: scalarset(2);
var junk: array [P] of V; c: array [P] of V; m: V;
ruleset v: V do startstate for p: P do c[p] := v; end; m := v; end end;
ruleset p: P do
  --@ load proc=p from=c[p]
  rule "load" true ==> end;
  rule "fetch" true ==> c[p] := m; end;
  ruleset v: V do
    --@ store proc=p
    rule "store" true ==> m := v; end;
  end;
end;
