import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Abi, Hex } from 'viem'
import { cacheDir } from '../cache_dir.ts'

export type Contract = { readonly abi: Abi; readonly bytecode: Hex }
export type ContractName =
  | 'TestToken'
  | 'FalseReturnToken'
  | 'SpoofToken'
  | 'FeeOnTransferToken'
  | 'Payer'
  | 'RejectingReceiver'
  | 'TronTether'
  | 'LookalikeToken'
  | 'RevertingToken'
  | 'BurningToken'
export type Contracts = Readonly<Record<ContractName, Contract>>

const require = createRequire(import.meta.url)
const sourceDir = join(import.meta.dirname, 'contracts')

/**
 * Our Solidity sources, compiled. The result is cached by what it is made from: loading the compiler
 * takes longer than starting everything else.
 */
export function compileContracts(): Contracts {
  const { input, path } = readSources()
  if (existsSync(path)) return JSON.parse(readFileSync(path, 'utf8')) as Contracts
  const contracts = compile(input)
  const draft = `${path}.${randomBytes(4).toString('hex')}`
  writeFileSync(draft, JSON.stringify(contracts))
  renameSync(draft, path)
  return contracts
}

/**
 * Has them compiled in a thread of its own, unless they are. The compiler keeps whoever calls it for many seconds on a busy
 * machine, and whatever had been asked of a node by then would be given up as unanswered.
 */
export async function compileAhead(log: (line: string) => void = () => {}): Promise<void> {
  const { path, version } = readSources()
  if (existsSync(path)) return
  log(`contracts: compiling with solc ${version}`)
  // It inherits no stripping of types from whoever runs the tests.
  const thread = new Worker(new URL('./compile_thread.ts', import.meta.url), { execArgv: [] })
  // An error of the thread is thrown here.
  await once(thread, 'exit')
}

function readSources(): { readonly input: string; readonly path: string; readonly version: string } {
  const sources = Object.fromEntries(
    readdirSync(sourceDir)
      .filter((name) => name.endsWith('.sol'))
      .sort()
      .map((name) => [name, { content: readFileSync(join(sourceDir, name), 'utf8') }]),
  )
  const input = {
    language: 'Solidity',
    sources,
    settings: {
      evmVersion: 'cancun',
      optimizer: { enabled: true, runs: 200 },
      outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object'] } },
    },
  }
  const versions = ['solc', '@openzeppelin/contracts'].map((name) => require(`${name}/package.json`).version)
  const key = createHash('sha256')
    .update(JSON.stringify([versions, input]))
    .digest('hex')
    .slice(0, 24)
  return {
    input: JSON.stringify(input),
    path: join(cacheDir(), `contracts-${key}.json`),
    version: versions[0],
  }
}

type SolcOutput = {
  errors?: { severity: string; formattedMessage: string }[]
  contracts?: Record<string, Record<string, { abi: Abi; evm: { bytecode: { object: string } } }>>
}

function compile(input: string): Contracts {
  const solc = require('solc') as { compile(input: string, callbacks: object): string }
  const readImport = (name: string) => ({ contents: readFileSync(require.resolve(name), 'utf8') })
  const output = JSON.parse(solc.compile(input, { import: readImport })) as SolcOutput
  const errors = output.errors?.filter(({ severity }) => severity === 'error') ?? []
  if (errors.length > 0) throw new Error(errors.map(({ formattedMessage }) => formattedMessage).join('\n'))
  const ours = Object.entries(output.contracts ?? {}).filter(([file]) => !file.startsWith('@'))
  const entries = ours.flatMap(([, contracts]) =>
    Object.entries(contracts).map(([name, { abi, evm }]) => [
      name,
      { abi, bytecode: `0x${evm.bytecode.object}` },
    ]),
  )
  return Object.fromEntries(entries) as Contracts
}
