import { readFile, rename, writeFile } from 'node:fs/promises'

/** Null where there is none. */
export async function readJson<Value>(path: string): Promise<Value | null> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as Value
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw new Error(`${path} cannot be read; start with --reset to begin anew`, { cause: error })
  }
}

/** Whole or not at all: a reader never sees half a file. */
export async function writeJson(path: string, value: unknown): Promise<void> {
  const draft = `${path}.new`
  await writeFile(draft, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 })
  await rename(draft, path)
}
