import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { cacheDir } from '../cache_dir.ts'
import { downloadBitcoind, downloadedBitcoind } from './download_bitcoind.ts'

export type FoundBitcoind =
  | { readonly ok: true; readonly command: readonly string[] }
  | { readonly ok: false; readonly why: string }

/**
 * BITCOIND_BIN, then PATH, then our cache, then a download. Never throws: without Bitcoin the rest of the
 * devnet starts all the same.
 */
export async function findBitcoind(log: (line: string) => void = () => {}): Promise<FoundBitcoind> {
  const named = process.env.BITCOIND_BIN
  if (named !== undefined && named !== '') {
    return isExecutable(named)
      ? { ok: true, command: [named] }
      : { ok: false, why: `BITCOIND_BIN=${named} is not an executable file` }
  }
  const onPath = (process.env.PATH ?? '')
    .split(delimiter)
    .map((dir) => join(dir, 'bitcoind'))
    .find(isExecutable)
  if (onPath !== undefined) return { ok: true, command: [onPath] }
  try {
    const folder = join(cacheDir(), `bitcoind-${process.arch}`)
    return { ok: true, command: downloadedBitcoind(folder) ?? (await downloadBitcoind(folder, log)) }
  } catch (error) {
    return { ok: false, why: `no bitcoind on PATH, and the download failed: ${(error as Error).message}` }
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
