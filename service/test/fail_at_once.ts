import fc from 'fast-check'

/** A killed mutant needs no smallest counterexample, and the same mutants have to die in every run. */
fc.configureGlobal({ endOnFailure: true, seed: 1 })
