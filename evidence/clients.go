package evidence

import (
	"encoding/json"
	"fmt"
)

// Clients is how many clients a verdict is about.
type Clients int

// AnyNumber stands for every number of clients. In JSON it is "any".
const AnyNumber Clients = -1

// anyWorld sets such verdicts apart from bounded ones where they are shown.
const anyWorld = ", any number of clients"

const anyWord = "any"

// MarshalJSON writes a number, or "any".
func (c Clients) MarshalJSON() ([]byte, error) {
	if c == AnyNumber {
		return json.Marshal(anyWord)
	}
	return json.Marshal(int(c))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Clients) UnmarshalJSON(b []byte) error {
	var word string
	if json.Unmarshal(b, &word) == nil {
		if word != anyWord {
			return fmt.Errorf("clients %q: want a number or %q", word, anyWord)
		}
		*c = AnyNumber
		return nil
	}
	return json.Unmarshal(b, (*int)(c))
}
