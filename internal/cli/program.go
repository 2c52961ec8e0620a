package cli

// ProgramVariable is the variable by which the lab knows the cabrank that has started it,
// and which it measures.
const ProgramVariable = "CABRANK_LAB_PROGRAM"
