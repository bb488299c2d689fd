import { readFile, rename, stat, writeFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'

/** Together longer than anvil takes to write it. */
const TRIES_MAX = 20
const RETRY_MS = 50

/**
 * Keeps a whole copy of the state beside it. Asked every second, it is a second or two old at most, wherever in anvil's own second it
 * is asked: what is being written just then is waited for. It is for a kill of anvil, not for a power cut: to wait for the disk
 * would cost more each second than all the rest.
 */
export function backerUp(statePath: string, retryMs = RETRY_MS): () => Promise<void> {
  let seen: string | undefined
  let isDone = true
  return async () => {
    for (let tries = 1; ; tries++) {
      const found = await look(statePath)
      if (found !== seen) {
        seen = found
        isDone = found === undefined || (await copyWhole(statePath, found))
      }
      if (isDone || tries === TRIES_MAX) return
      await delay(retryMs)
    }
  }
}

async function copyWhole(statePath: string, found: string): Promise<boolean> {
  const copy = copyPath(statePath)
  // Not copyFile: it waits for ever for the bytes that were cut off since it asked how many there are.
  const state = await readFile(statePath)
  if ((await look(statePath)) !== found || !isWhole(state)) return false
  await writeFile(`${copy}.draft`, state)
  await rename(`${copy}.draft`, copy)
  return true
}

export function copyPath(statePath: string): string {
  return `${statePath}.copy`
}

/** Differs with all that is written to the file; undefined: it is not there. */
async function look(path: string): Promise<string | undefined> {
  try {
    const { mtimeNs, size } = await stat(path, { bigint: true })
    return `${mtimeNs} ${size}`
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** The last of the state's own keys. */
const LAST_KEY = Buffer.from('"historical_states":')
const [QUOTE, BACKSLASH] = Buffer.from('"\\')
const [BRACE, BRACKET, BRACE_END, BRACKET_END] = Buffer.from('{[}]')

/**
 * Whether all of the state is there. anvil cuts its file off and writes it from the beginning, so what stands in it is a beginning of a
 * JSON object, which is whole when everything that was opened in it is closed. That is counted from the last key on only, which
 * stands in that object itself: a few states of accounts, a millisecond, where a day's blocks before it are 40 MB, and to
 * parse these took this thread most of each second.
 */
export function isWhole(state: Buffer): boolean {
  const last = state.lastIndexOf(LAST_KEY)
  let open = last < 0 ? 0 : 1
  for (let at = Math.max(last, 0); at < state.length; at++) {
    const byte = state[at]
    if (byte === QUOTE) at = endOfString(state, at)
    else if (byte === BRACE || byte === BRACKET) open += 1
    else if (byte === BRACE_END || byte === BRACKET_END) {
      open -= 1
      if (open === 0) return state.toString('latin1', at + 1).trim() === ''
    }
  }
  return false
}

/** Where the string that begins there ends; where it does not, behind everything. */
function endOfString(state: Buffer, begin: number): number {
  for (let at = begin + 1; at < state.length; at++) {
    if (state[at] === BACKSLASH) at += 1
    else if (state[at] === QUOTE) return at
  }
  return state.length
}
