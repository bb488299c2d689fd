import { createHash, randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
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
export function compileContracts(log: (line: string) => void = () => {}): Contracts {
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
  const path = join(cacheDir(), `contracts-${key}.json`)
  if (existsSync(path)) return JSON.parse(readFileSync(path, 'utf8')) as Contracts
  log(`contracts: compiling with solc ${versions[0]}`)
  const contracts = compile(JSON.stringify(input))
  const draft = `${path}.${randomBytes(4).toString('hex')}`
  writeFileSync(draft, JSON.stringify(contracts))
  renameSync(draft, path)
  return contracts
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
