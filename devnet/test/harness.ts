import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import pg from 'pg'

/** A machine that is busy with others lets every answer wait; only what hangs takes so long. */
export const PATIENCE_MS = 60_000

export function makeTemporaryFolder(): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'cambist-devnet-test-'))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

/** Runs a script beside this file and waits for its first line, which is JSON. */
export async function runScript<T>(
  name: string,
  ...args: string[]
): Promise<{ child: ChildProcess; said: T }> {
  const path = join(import.meta.dirname, name)
  const child = spawn(process.execPath, [path, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout })
  const line = await Promise.race([
    once(lines, 'line').then(([text]) => text as string),
    once(child, 'exit').then(([code]) => {
      throw new Error(`${name} ended with ${code}`)
    }),
  ])
  return { child, said: JSON.parse(line) as T }
}

export async function killHard(child: ChildProcess): Promise<void> {
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
}

/** Over a connection of its own. */
export async function query(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}
