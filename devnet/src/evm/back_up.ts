import { existsSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'

/** A file that nobody wrote to for a while, and not during the copy, is whole as long as anvil lives. */
export function backUp(statePath: string): void {
  const quietMs = 200
  const copy = copyPath(statePath)
  if (!existsSync(statePath)) return
  const before = statSync(statePath)
  if (existsSync(copy) && statSync(copy).mtimeMs >= before.mtimeMs) return
  if (Date.now() - before.mtimeMs < quietMs) return
  // Not copyFile: it waits for ever for the bytes that were cut off since it asked how many there are.
  writeFileSync(`${copy}.draft`, readFileSync(statePath))
  const after = statSync(statePath)
  if (after.mtimeMs === before.mtimeMs && after.size === before.size) renameSync(`${copy}.draft`, copy)
}

export function copyPath(statePath: string): string {
  return `${statePath}.copy`
}
