import { mkdtempSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { removePostgres } from '@cambist/devnet'
import type { ToldSecret } from '../../src/accounts/keys.ts'
import {
  killAll,
  pidsOf,
  type RunningSandbox,
  run,
  startSandboxProcess,
} from '../functional/processes/running_sandbox.ts'
import type { Reading } from './loop_probe.ts'

/** `npm start` in another process, with a probe inside that tells of its event loop and its memory. */
export type ProbedSandbox = RunningSandbox & {
  readonly dataDir: string
  readonly port: number
  /** From now on stalls are measured. */
  begin(): Promise<void>
  read(): Promise<Reading>
  /** For controls: the loop is stopped for a while; memory is taken for good. */
  spoil(how: 'stall' | 'hoard'): Promise<void>
  /** A key of another account. */
  makeKey(name: string): Promise<ToldSecret>
  stop(): Promise<void>
}

const PROBE = new URL('./loop_probe.ts', import.meta.url).href

export async function startProbedSandbox(): Promise<ProbedSandbox> {
  const dataDir = join(mkdtempSync(join(tmpdir(), 'cambist-probed-')), 'data')
  const socketPath = join(dataDir, '..', 'probe.sock')
  const sandbox = await startSandboxProcess(dataDir, {
    NODE_OPTIONS: `--import ${PROBE}`,
    PROBE_SOCKET: socketPath,
    CAMBIST_LOG_LEVEL: 'info',
    CAMBIST_RATE_LIMIT_UNITS_PER_MINUTE: '10000000',
    CAMBIST_RATE_LIMIT_BURST_PER_SECOND: '1000000',
  })
  return {
    ...sandbox,
    dataDir,
    port: Number(new URL(sandbox.file.base_url).port),
    begin: async () => void (await ask(socketPath, '/begin')),
    read: async () => (await ask(socketPath, '/read')) as Reading,
    spoil: async (how) => void (await ask(socketPath, `/${how}`)),
    makeKey: async (name) => {
      const args = ['keys', '--sandbox', 'create', name, '--json']
      const { code, output } = await run('service/src/cli.ts', args, { CAMBIST_DATA_DIR: dataDir })
      if (code !== 0) throw new Error(output)
      return JSON.parse(output) as ToldSecret
    },
    stop: async () => {
      const code = await sandbox.end('SIGTERM')
      if (code !== 0) killAll(pidsOf(dataDir))
      removePostgres(join(dataDir, 'postgres'))
      rmSync(join(dataDir, '..'), { recursive: true, force: true })
    },
  }
}

function ask(socketPath: string, path: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath, path }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      response.on('end', () => resolve(JSON.parse(text)))
    })
    asked.on('error', reject).end()
  })
}
