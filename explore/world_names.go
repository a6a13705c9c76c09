package explore

import (
	"strings"
)

func slotToken(i int) string { return clientPrefix + string(rune('0'+i)) }

// mentions says what of its client a command depends on.
type mentions struct{ self, request, foreign bool }

func mentionsSlot(s string) bool {
	for {
		i := strings.Index(s, clientPrefix)
		if i < 0 {
			return false
		}
		s = s[i+len(clientPrefix):]
		if s != "" && s[0] >= '0' && s[0] < '0'+maxSlots {
			return true
		}
	}
}

// canonical numbers the slot tokens in the order in which they are met; inv
// says what became of each, -1 when its client is named nowhere any more.
func (w *world) canonical(m moment) (moment, [maxSlots]int8) {
	var inv [maxSlots]int8
	for i := range inv {
		inv[i] = -1
	}
	if !w.symmetry {
		return m, inv
	}
	text := m.redis.Encode() + m.sql.key()
	n := int8(0)
	same := true
	for rest := text; ; {
		i := strings.Index(rest, clientPrefix)
		if i < 0 {
			break
		}
		rest = rest[i+len(clientPrefix):]
		slot := int(rest[0]) - '0'
		if slot < 0 || slot >= maxSlots || inv[slot] >= 0 {
			continue
		}
		same = same && int(n) == slot
		inv[slot] = n
		n++
	}
	for _, session := range m.sql.sessions() {
		if slot := session / maxConns; slot < maxSlots-1 && inv[slot] < 0 {
			same = same && int(n) == slot
			inv[slot] = n
			n++
		}
	}
	m.slots = int(n)
	if same {
		return m, inv
	}
	var pairs []string
	for old, now := range inv {
		if now >= 0 {
			pairs = append(pairs, slotToken(old), slotToken(int(now)))
		}
	}
	names := strings.NewReplacer(pairs...)
	m.redis = m.redis.Rename(names)
	m.sql = m.sql.renamed(inv, names)
	return m, inv
}
