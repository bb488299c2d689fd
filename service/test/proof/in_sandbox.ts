import { onTestFailed } from 'vitest'
import { findUnended } from '../harness/invariants.ts'
import {
  checkSandbox,
  startTestSandbox,
  type TestSandbox,
  type TestSandboxOptions,
} from '../harness/test_sandbox.ts'

/**
 * Runs a proof on a sandbox of its own, and holds the whole list of invariants against it at the end: only then has the
 * claim held.
 */
export async function inSandbox(
  options: TestSandboxOptions,
  run: (sandbox: TestSandbox) => Promise<void>,
): Promise<void> {
  const sandbox = await startTestSandbox(options)
  let isOver = false
  const tell = async () => console.error(await sandbox.tellAll())
  // Whose time is over is asked in the middle.
  onTestFailed(async () => {
    if (!isOver) await tell()
  })
  try {
    await run(sandbox)
    await checkSandbox(sandbox)
  } catch (error) {
    // What cannot be told must not hide what failed.
    await tell().catch(console.error)
    throw error
  } finally {
    isOver = true
    await sandbox.stop()
  }
}

/** With all faults off every order ends: throws with those that have not. */
export async function checkAllEnded(sandbox: TestSandbox): Promise<void> {
  const look = async () => {
    const unended = await findUnended(sandbox)
    if (unended.length > 0) throw new Error(unended.join('\n'))
  }
  // A thousand orders that are buried at once end one after the other.
  await sandbox.eventually('every order has ended', look, { timeoutMs: 300_000 })
}
