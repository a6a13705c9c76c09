package evidence

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// Shard says which part of what was asked a report is.
type Shard struct {
	Index int `json:"index"` // from 1
	Of    int `json:"of"`
	// Asked is what all shards together answer, in the words of the command.
	Asked string `json:"asked"`
	// Version of the program: a revision without changes, or the program's own hash.
	Version string `json:"version"`

	turn int
}

// mostShards bounds the number of shards.
const mostShards = 10_000

// ParseShard reads i/n, with i from 1 to n.
func ParseShard(text string) (Shard, error) {
	bad := fmt.Errorf("want i/n, with i from 1 to n and n up to %d, got %q", mostShards, text)
	first, second, ok := strings.Cut(text, "/")
	if !ok {
		return Shard{}, bad
	}
	index, err1 := strconv.ParseUint(first, 10, 32)
	of, err2 := strconv.ParseUint(second, 10, 32)
	if err1 != nil || err2 != nil || index < 1 || index > of || of > mostShards {
		return Shard{}, bad
	}
	return Shard{Index: int(index), Of: int(of)}, nil
}

// Mine says whether the next piece of work is this shard's: they take turns. All
// shards have to ask about the same pieces in the same order. A nil shard has all.
func (s *Shard) Mine() bool {
	if s == nil {
		return true
	}
	s.turn++
	return (s.turn-1)%s.Of == s.Index-1
}

// ProgramVersion tells programs apart whose verdicts might differ.
func ProgramVersion() (string, error) {
	if info, ok := debug.ReadBuildInfo(); ok {
		settings := map[string]string{}
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
		if settings["vcs.revision"] != "" && settings["vcs.modified"] == "false" {
			return settings["vcs.revision"], nil
		}
	}
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("version of this program: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("version of this program: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("version of this program: %w", err)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}
