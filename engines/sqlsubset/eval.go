package sqlsubset

import (
	"errors"
	"math"
	"math/bits"
	"strconv"
)

// env is what an expression is evaluated over.
type env struct {
	args     []value
	row      []value
	excluded []value
	group    [][]value // the rows under an aggregate
}

// errNumericRange is met when a sum leaves int64, where PostgreSQL's numeric
// would go on; DB.Exec turns it into an *UnsupportedError.
var errNumericRange = errors.New("numeric beyond 64 bits")

func (b *bound) eval(e *env) (value, error) {
	switch b.op {
	case opConst:
		return b.val, nil
	case opParam:
		return e.args[b.param], nil
	case opColumn:
		if b.excluded {
			return e.excluded[b.col], nil
		}
		return e.row[b.col], nil
	case opAnd, opOr:
		return b.logic(e)
	case opCount:
		return intValue(int64(len(e.group))), nil
	case opSum:
		sum := value{}
		for _, row := range e.group {
			v := row[b.kids[0].col]
			if v.null() {
				continue
			}
			n, ok := addInt(sum.n, v.n)
			if !ok {
				return value{}, errNumericRange
			}
			sum = intValue(n)
		}
		return sum, nil
	case opCoalesce:
		for _, k := range b.kids {
			v, err := k.eval(e)
			if err != nil || !v.null() {
				return v, err
			}
		}
		return value{}, nil
	}
	l, err := b.kids[0].eval(e)
	if err != nil {
		return value{}, err
	}
	switch b.op {
	case opIsNull:
		return boolValue(l.null()), nil
	case opIsNotNull:
		return boolValue(!l.null()), nil
	}
	if l.null() {
		return value{}, b.failRight(e)
	}
	switch b.op {
	case opNot:
		return boolValue(!l.isTrue()), nil
	case opToText:
		return textValue(strconv.FormatInt(l.n, 10)), nil
	case opNeg:
		return b.arith(opSub, 0, l.n)
	}
	r, err := b.kids[1].eval(e)
	if err != nil || r.null() {
		return value{}, err
	}
	switch b.op {
	case opAdd, opSub, opMul:
		return b.arith(b.op, l.n, r.n)
	}
	return boolValue(orders(b.op, compare(l, r))), nil
}

func orders(o op, c int) bool {
	switch o {
	case opEq:
		return c == 0
	case opNe:
		return c != 0
	case opLt:
		return c < 0
	case opLe:
		return c <= 0
	case opGt:
		return c > 0
	}
	return c >= 0 // opGe
}

// failRight evaluates the right operand for its errors only: a strict operator
// evaluates both before it looks for NULL.
func (b *bound) failRight(e *env) error {
	if len(b.kids) < 2 {
		return nil
	}
	_, err := b.kids[1].eval(e)
	return err
}

// logic is AND and OR of three-valued logic, left to right.
func (b *bound) logic(e *env) (value, error) {
	decides := boolValue(b.op == opOr)
	l, err := b.kids[0].eval(e)
	if err != nil || l == decides {
		return l, err
	}
	r, err := b.kids[1].eval(e)
	if err != nil || r == decides {
		return r, err
	}
	if l.null() || r.null() {
		return value{}, nil
	}
	return boolValue(b.op == opAnd), nil
}

func (b *bound) arith(o op, l, r int64) (value, error) {
	var n int64
	ok := true
	switch o {
	case opAdd:
		n, ok = addInt(l, r)
	case opSub:
		n = l - r
		ok = (l >= 0) == (r >= 0) || (n >= 0) == (l >= 0)
	case opMul:
		n, ok = mulInt(l, r)
	}
	switch {
	case b.typ == typNumeric && !ok:
		return value{}, errNumericRange
	case b.typ == typInt4 && (!ok || n < math.MinInt32 || n > math.MaxInt32):
		return value{}, pgErr(codeOutOfRange, "integer out of range")
	case !ok:
		return value{}, pgErr(codeOutOfRange, "bigint out of range")
	}
	return intValue(n), nil
}

func addInt(l, r int64) (int64, bool) {
	n := l + r
	return n, (l >= 0) != (r >= 0) || (n >= 0) == (l >= 0)
}

func mulInt(l, r int64) (int64, bool) {
	neg := (l < 0) != (r < 0)
	hi, lo := bits.Mul64(abs(l), abs(r))
	switch {
	case hi != 0:
		return 0, false
	case neg:
		return -int64(lo), lo <= 1<<63
	}
	return int64(lo), lo <= math.MaxInt64
}

func abs(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

// holds evaluates a condition; a missing one holds.
func (b *bound) holds(e *env) (bool, error) {
	if b == nil {
		return true, nil
	}
	v, err := b.eval(e)
	return v.isTrue(), err
}
