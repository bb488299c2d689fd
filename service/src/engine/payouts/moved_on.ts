/** Thrown so that nothing of a transaction stays: somebody else has gone on with the outflow meanwhile. */
export class MovedOn extends Error {}

/** Whether `act` came to its end. False: somebody else has gone on with the outflow, and nothing was written. */
export async function unlessMovedOn(act: () => Promise<unknown>): Promise<boolean> {
  try {
    await act()
    return true
  } catch (error) {
    if (error instanceof MovedOn) return false
    throw error
  }
}
