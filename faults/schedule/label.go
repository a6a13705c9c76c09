package schedule

// Label is the command or statement of a step without what a diagram has no
// room for: of a script only the name. Of a step without one it is the action.
func (st *Step) Label() string {
	if len(st.Words) > 0 || st.Statement != "" {
		return st.label()
	}
	return st.Action()
}
