package faults

import (
	"fmt"
	"slices"
	"strings"
)

// Setting says how the server that a fault hits is set up. What a fault does
// depends on it, so each has verdicts of its own. It is empty for kinds to which
// no setting matters.
type Setting string

// The settings, by the kind to which they matter.
const (
	// redis-restart: what persistence keeps.
	NoPersistence Setting = "none"         // nothing: Redis comes back empty
	Snapshot      Setting = "rdb"          // the snapshot that was saved when the article went on sale
	AOFEverySec   Setting = "aof-everysec" // all but the last writes: the machine died before they were on disk
	AOFAlways     Setting = "aof-always"   // every acknowledged write

	// redis-failover: what a primary does about its replica.
	Async       Setting = "async"        // nothing
	Wait        Setting = "wait"         // each deduction is followed by WAIT 1
	MinReplicas Setting = "min-replicas" // min-replicas-to-write 1: it refuses writes once it has noticed

	// postgres-restart: synchronous_commit.
	SyncCommitOn  Setting = "on"  // every acknowledged commit survives
	SyncCommitOff Setting = "off" // the last commits may be lost

	// NoSetting is that of every other kind.
	NoSetting Setting = ""
)

var settings = map[Kind][]Setting{
	RedisRestart:    {NoPersistence, Snapshot, AOFEverySec, AOFAlways},
	RedisFailover:   {Async, Wait, MinReplicas},
	PostgresRestart: {SyncCommitOn, SyncCommitOff},
}

// Settings lists the settings that matter to a kind; NoSetting alone when none
// does.
func (k Kind) Settings() []Setting {
	if list := settings[k]; len(list) > 0 {
		return slices.Clone(list)
	}
	return []Setting{NoSetting}
}

// Row is a kind and a setting in one word, as a row of the matrix is called and as
// a declared weakness may name it: redis-restart(rdb), or the kind alone.
func Row(k Kind, s Setting) string {
	if s == NoSetting {
		return string(k)
	}
	return fmt.Sprintf("%s(%s)", k, s)
}

// ParseRow undoes Row; the error is an *UnknownKindError or an
// *UnknownSettingError.
func ParseRow(name string) (Kind, Setting, error) {
	kind, setting, has := strings.Cut(strings.TrimSuffix(name, ")"), "(")
	k, err := ParseKind(kind)
	if err != nil || !has {
		return k, NoSetting, err
	}
	s := Setting(setting)
	if !slices.Contains(settings[k], s) || Row(k, s) != name {
		return k, NoSetting, &UnknownSettingError{name}
	}
	return k, s, nil
}

// UnknownSettingError names a setting that does not exist and those that do.
type UnknownSettingError struct{ Name string }

func (e *UnknownSettingError) Error() string {
	var words []string
	for _, k := range kinds {
		for _, s := range settings[k.ID] {
			words = append(words, fmt.Sprintf("%s of %s", s, k.ID))
		}
	}
	return fmt.Sprintf("unknown setting %q; there are %s", e.Name, strings.Join(words, ", "))
}

// ParseSetting finds a setting by its name; the error is an
// *UnknownSettingError.
func ParseSetting(name string) (Setting, error) {
	for _, list := range settings {
		if slices.Contains(list, Setting(name)) {
			return Setting(name), nil
		}
	}
	return NoSetting, &UnknownSettingError{name}
}
