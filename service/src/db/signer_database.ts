/** Trouble with a database that is the signer's own: another variable names it than the service's. What went wrong is its `cause`. */
export class SignerDatabaseFailed extends Error {
  override readonly name = 'SignerDatabaseFailed'

  constructor(cause: unknown) {
    super('the database of SIGNER_DATABASE_URL cannot be used', { cause })
  }
}

/** The answer of `work`, which asks the database of SIGNER_DATABASE_URL and no other. Throws SignerDatabaseFailed where it fails. */
export async function onSignerDatabase<Value>(work: () => Promise<Value>): Promise<Value> {
  try {
    return await work()
  } catch (error) {
    throw new SignerDatabaseFailed(error)
  }
}
