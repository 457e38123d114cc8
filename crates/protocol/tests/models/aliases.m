-- expect: states 567, fired 1701, depth 17, reduced 567
-- Aliases around rules and inside them, of places and of values.
type P: 0..2;
var a: array [P] of record x: 0..2; y: boolean; end; at: P;
startstate for i: P do a[i].x := 0; a[i].y := false; end; at := 0; end;
ruleset i: P do
  alias me: a[i]; here: a[at] do
    rule "bump" me.x < 2 ==>
      me.x := me.x + 1;
      alias it: a[(i + 1) % 3]; old: me.x + 0 do
        it.y := old = 2;
        -- The alias stays where it was when it was bound.
        at := (at + 1) % 3;
        here.y := !here.y;
      end;
    end;
    rule "drop" me.x = 2 ==> me.x := 0; end;
  end;
end;
