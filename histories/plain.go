package histories

import (
	"bytes"

	"stockproof/model"
)

// parsePlain reads the operation lines this program writes, several times as
// fast as encoding/json. It answers ok only for what strict would accept with
// the same result, and leaves everything unusual to it: escapes, unknown or
// repeated fields, numbers that are no plain integers.
func parsePlain(text []byte) (l operationLine, ok bool) {
	p := plain{text: text}
	if !p.take('{') {
		return l, false
	}
	var seen uint
	var numbers struct{ client, call, ret, value int64 }
	field := func(n uint) bool {
		was := seen & (1 << n)
		seen |= 1 << n
		return was == 0
	}
	for {
		key, isString := p.str()
		if !isString || !p.take(':') {
			return l, false
		}
		fits := false
		switch string(key) {
		case "client":
			if numbers.client, fits = p.integer(); fits && field(0) {
				client := int(numbers.client)
				l.Client = &client
				break
			}
			fits = false
		case "op":
			l.Op, fits = p.op()
			fits = fits && field(1)
		case "qty":
			l.Qty, fits = p.integer()
			fits = fits && field(2)
		case "call":
			numbers.call, fits = p.integer()
			fits = fits && field(3)
			l.Call = &numbers.call
		case "return":
			if p.null() {
				fits = field(4)
				break
			}
			numbers.ret, fits = p.integer()
			fits = fits && field(4)
			l.Return = &numbers.ret
		case "outcome":
			l.Outcome, fits = p.outcome()
			fits = fits && field(5)
		case "value":
			numbers.value, fits = p.integer()
			fits = fits && field(6)
			l.Value = &numbers.value
		case "request":
			var request []byte
			request, fits = p.str()
			fits = fits && field(7)
			l.Request = string(request)
		}
		if !fits {
			return l, false
		}
		if p.take('}') {
			return l, p.at == len(text)
		}
		if !p.take(',') {
			return l, false
		}
	}
}

type plain struct {
	text []byte
	at   int
}

func (p *plain) take(c byte) bool {
	for p.at < len(p.text) && p.text[p.at] == ' ' {
		p.at++
	}
	if p.at < len(p.text) && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}

// str is a string of printable ASCII without escapes.
func (p *plain) str() ([]byte, bool) {
	if !p.take('"') {
		return nil, false
	}
	from := p.at
	for ; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			return p.text[from : p.at-1], true
		case c < ' ' || c > '~' || c == '\\':
			return nil, false
		}
	}
	return nil, false
}

// integer is a plain integer of at most 18 digits.
func (p *plain) integer() (n int64, ok bool) {
	negative := p.take('-') // also skips blanks
	from := p.at
	for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
		n = 10*n + int64(p.text[p.at]-'0')
		p.at++
		if p.at-from > 18 {
			return 0, false
		}
	}
	if p.at == from || p.text[from] == '0' && p.at-from > 1 {
		return 0, false
	}
	if negative {
		n = -n
	}
	return n, true
}

func (p *plain) null() bool {
	at := p.at
	if p.take('n') && bytes.HasPrefix(p.text[p.at:], []byte("ull")) {
		p.at += 3
		return true
	}
	p.at = at
	return false
}

func (p *plain) op() (model.Op, bool) {
	text, ok := p.str()
	for _, op := range [...]model.Op{model.Deduct, model.Restock, model.Read} {
		if ok && string(text) == string(op) {
			return op, true
		}
	}
	return "", false
}

func (p *plain) outcome() (model.Outcome, bool) {
	text, ok := p.str()
	for _, o := range [...]model.Outcome{model.Sold, model.SoldOut, model.OK, model.Value, model.Unknown, model.Busy, model.Failed} {
		if ok && string(text) == string(o) {
			return o, true
		}
	}
	return "", false
}
