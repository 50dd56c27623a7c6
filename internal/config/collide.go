package config

// collides reports whether two templates can give the same name, the generation aside: whether their pieces, as patterns of characters, digits
// and runs of digits, have a text in common.
func collides(a, b []piece) bool {
	x, y := pattern(a), pattern(b)
	seen := map[[2]int]bool{}
	var meet func(i, j int) bool
	meet = func(i, j int) bool {
		if i == len(x) && j == len(y) {
			return true
		}
		if i == len(x) || j == len(y) || seen[[2]int{i, j}] {
			return false
		}
		seen[[2]int{i, j}] = true
		if !x[i].meets(y[j]) {
			return false
		}
		// Each side's next token, or the same one again where it is a run.
		return meet(i+1, j+1) || x[i].run && meet(i, j+1) || y[j].run && meet(i+1, j)
	}
	return meet(0, 0)
}

// token is one character of a name: itself, any digit, or a run of digits of any length.
type token struct {
	char  byte
	digit bool
	run   bool
}

func (t token) meets(o token) bool {
	switch {
	case t.digit && o.digit:
		return true
	case t.digit:
		return o.char >= '0' && o.char <= '9'
	case o.digit:
		return t.char >= '0' && t.char <= '9'
	default:
		return t.char == o.char
	}
}

// pattern turns pieces into tokens.
func pattern(pieces []piece) []token {
	var tokens []token
	for _, p := range pieces {
		switch p.kind {
		case literal:
			for i := range len(p.literal) {
				tokens = append(tokens, token{char: p.literal[i]})
			}
		case slotNumber:
			tokens = append(tokens, token{digit: true, run: true})
		default:
			for range digits[p.kind] {
				tokens = append(tokens, token{digit: true})
			}
		}
	}
	return tokens
}

// longest returns the length of the longest name that pieces give, the generation's suffix aside.
func longest(pieces []piece, slots int) int {
	n := 0
	for _, p := range pieces {
		switch p.kind {
		case literal:
			n += len(p.literal)
		case slotNumber:
			for s := max(slots-1, 1); s > 0; s /= 10 {
				n++
			}
		case shortYear:
			n += digits[fullYear]
		default:
			n += digits[p.kind]
		}
	}
	return n
}
