-- expect: states 157, fired 255, depth 8, reduced 28
const N: 3;
type P: scalarset(N); St: enum{I,W,C};
var st: array[P] of St; q: array[0..N-1] of P; len: 0..N; owner: array[P] of P;
startstate begin for p: P do st[p] := I; undefine owner[p]; end; undefine q; len := 0; end;
ruleset p: P do
 rule "want" st[p] = I ==> begin st[p] := W; q[len] := p; len := len + 1; endrule;
 rule "enter" st[p] = W & q[0] = p & forall o: P do st[o] != C end ==> begin st[p] := C; for o: P do if o != p & st[o] = W then owner[o] := p; end; end; endrule;
 rule "leave" st[p] = C ==> begin st[p] := I; for i: 0..N-2 do if i < len - 1 then q[i] := q[i+1]; end; end; undefine q[len-1]; len := len - 1; undefine owner[p]; endrule;
endruleset;
