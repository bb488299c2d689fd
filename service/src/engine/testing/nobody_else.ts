/** The guard of a test that works alone: there is no lease to lose, and nothing to be refused. */
export async function nobodyElse(): Promise<void> {}
