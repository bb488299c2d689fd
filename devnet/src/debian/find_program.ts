import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { cacheDir } from '../cache_dir.ts'
import { type DebianProgram, downloadedProgram, downloadProgram } from './download_program.ts'

export type FoundProgram =
  | { readonly ok: true; readonly command: readonly string[] }
  | { readonly ok: false; readonly why: string }

/** The path that the environment names, then PATH and `folders`, then our cache, then a download. Never throws. */
export async function findProgram(
  program: DebianProgram,
  {
    variable,
    folders = [],
    log = () => {},
  }: {
    readonly variable: string
    readonly folders?: readonly string[]
    readonly log?: (line: string) => void
  },
): Promise<FoundProgram> {
  const { name } = program
  const named = process.env[variable]
  if (named !== undefined && named !== '') {
    return isExecutable(named)
      ? { ok: true, command: [named] }
      : { ok: false, why: `${variable}=${named} is not an executable file` }
  }
  const here = [...(process.env.PATH ?? '').split(delimiter), ...folders]
    .map((dir) => join(dir, name))
    .find(isExecutable)
  if (here !== undefined) return { ok: true, command: [here] }
  try {
    const folder = join(cacheDir(), `${name}-${process.arch}`)
    const command = downloadedProgram(program, folder) ?? (await downloadProgram(program, folder, log))
    return { ok: true, command }
  } catch (error) {
    return { ok: false, why: `no ${name} on PATH, and the download failed: ${(error as Error).message}` }
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
