package schedule

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"stockproof/schemes"
)

// RedisWords are a Redis command as a schedule writes it: the command in
// capitals, a script by its name, whether it was sent by digest or in full, and
// without the number of its keys.
func RedisWords(argv []string) []string {
	if len(argv) == 0 {
		return nil
	}
	words := append([]string(nil), argv...)
	words[0] = strings.ToUpper(words[0])
	if len(words) < 3 || words[0] != "EVALSHA" && words[0] != "EVAL" {
		return words
	}
	digest := words[1]
	if words[0] == "EVAL" {
		sum := sha1.Sum([]byte(words[1]))
		digest = hex.EncodeToString(sum[:])
	}
	name := schemes.ScriptName(digest)
	if name == "" {
		name = "script-" + digest[:min(8, len(digest))]
	}
	return append([]string{words[0], name}, schemes.ScriptWords(digest, words[3:])...)
}

// Null is a SQL NULL among the arguments of StatementText.
const Null = "\x00null"

var parameter = regexp.MustCompile(`\$[0-9]+`)

// StatementText is a SQL statement as a schedule writes it: on one line, with
// its arguments in their places. A number stands as it is, everything else in
// quotes; types are not told, since the two worlds know different ones. args
// are the arguments as text, Null for NULL.
func StatementText(sql string, args []string) string {
	text := strings.Join(strings.Fields(sql), " ")
	return parameter.ReplaceAllStringFunc(text, func(p string) string {
		n, err := strconv.Atoi(p[1:])
		if err != nil || n < 1 || n > len(args) {
			return p
		}
		return sqlLiteral(args[n-1])
	})
}

func sqlLiteral(arg string) string {
	if arg == Null {
		return "null"
	}
	if isInteger(arg) || arg == "true" || arg == "false" {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", "''") + "'"
}

var integer = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)

func isInteger(s string) bool { return integer.MatchString(s) }

// word writes a word bare when it can be read back so, else in Go's quotes.
func word(s string) string {
	if s == "" || s[0] == '#' || s[0] == '"' || s == "=>" || s == "!" || s == ";" || !plain(s) {
		return strconv.Quote(s)
	}
	return s
}

// plain says that a text has neither blanks nor anything a person cannot see.
func plain(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if unicode.IsSpace(r) || !unicode.IsGraphic(r) || r == '"' {
			return false
		}
	}
	return true
}

// separators end a SQL statement in a line.
var separators = []string{"=>", "!", ";", "#"}

// statement writes SQL bare when it can be read back so.
func statement(s string) string {
	if bare, rest, err := cutStatement(s); err == nil && bare == s && rest == "" && s != "" && s[0] != '"' && s != string(GoesOn) && s != string(Deadlock) &&
		strings.Join(strings.Fields(s), " ") == s && visible(s) {
		return s
	}
	return strconv.Quote(s)
}

func visible(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if r != ' ' && !unicode.IsGraphic(r) {
			return false
		}
	}
	return true
}

// cutStatement takes SQL off the beginning of a line: up to a separator that
// stands by itself outside of quotes.
func cutStatement(line string) (sql, rest string, err error) {
	var quote byte
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
			continue
		case c == '\'' || c == '"':
			quote = c
			continue
		case i > 0 && !isBlank(line[i-1]):
			continue
		}
		for _, s := range separators {
			after := strings.TrimPrefix(line[i:], s)
			if len(after) < len(line[i:]) && (s == "#" || after == "" || isBlank(after[0])) {
				return strings.TrimRight(line[:i], " \t"), line[i:], nil
			}
		}
	}
	if quote != 0 {
		return "", "", fmt.Errorf("a %c that is left open", quote)
	}
	return strings.TrimRight(line, " \t"), "", nil
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }
