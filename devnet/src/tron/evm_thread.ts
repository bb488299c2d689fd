import { workerData } from 'node:worker_threads'
import { Common, Hardfork, Mainnet, type StateManagerInterface } from '@ethereumjs/common'
import {
  createEVM,
  type EVM,
  EVMError,
  type EVMRunCallOpts,
  type ExecResult,
  paramsEVM,
} from '@ethereumjs/evm'
import { SimpleStateManager } from '@ethereumjs/statemanager'
import { Account, Address } from '@ethereumjs/util'
import { keccak_256 } from '@noble/hashes/sha3.js'
import type {
  EvmAnswer,
  EvmLine,
  EvmOutcome,
  EvmPayment,
  EvmQuestion,
  EvmRun,
  FromEvm,
  ToEvm,
} from './evm_messages.ts'

/** The other end of evm.ts: a real EVM, whose state is asked of the main thread entry by entry. */
const { port, wake } = workerData as EvmLine

function tell(message: FromEvm): void {
  port.postMessage(message)
  Atomics.add(wake, 0, 1)
  Atomics.notify(wake, 0)
}

let onAnswer: (answer: EvmAnswer) => void = () => {}
function ask(question: EvmQuestion): Promise<EvmAnswer> {
  return new Promise((resolve) => {
    onAnswer = resolve
    tell({ question })
  })
}

/** What the chain holds, fetched when it is wanted; what changes stays here until the run is over. */
class AskedState extends SimpleStateManager {
  readonly known = new Map<string, string>()

  override async getAccount(address: Address): Promise<Account | undefined> {
    const name = address.toString()
    if (!this.topAccountStack().has(name)) {
      const answer = await ask({ kind: 'account', address: name.slice(2) })
      if (answer.kind !== 'account') throw new Error('answered something else')
      this.known.set(name, `${answer.sun ?? 0n}`)
      this.known.set(`code ${name}`, answer.code)
      const code = Buffer.from(answer.code, 'hex')
      // One for each level: a call that fails goes back a level, and accounts are changed in place.
      for (const accounts of this.accountStack) accounts.set(name, accountOf(answer.sun, code))
      for (const codes of this.codeStack) codes.set(name, code)
    }
    return super.getAccount(address)
  }

  override async getCode(address: Address): Promise<Uint8Array> {
    await this.getAccount(address)
    return super.getCode(address)
  }

  override async getStorage(address: Address, key: Uint8Array): Promise<Uint8Array> {
    const name = `${address.toString()}_0x${hexOf(key)}`
    if (!this.topStorageStack().has(name)) {
      const answer = await ask({ kind: 'slot', address: address.toString().slice(2), key: hexOf(key) })
      if (answer.kind !== 'slot') throw new Error('answered something else')
      this.known.set(name, answer.value)
      for (const slots of this.storageStack) slots.set(name, Buffer.from(answer.value, 'hex'))
    }
    return super.getStorage(address, key)
  }

  changes(): Pick<EvmOutcome, 'balances' | 'codes' | 'slots'> {
    const isChanged = (name: string, now: string) => (this.known.get(name) ?? '') !== now
    return {
      balances: [...this.topAccountStack()].flatMap(([name, account]) =>
        isChanged(name, `${account?.balance ?? 0n}`)
          ? [[name.slice(2), account?.balance ?? 0n] as const]
          : [],
      ),
      codes: [...this.topCodeStack()].flatMap(([name, code]) =>
        isChanged(`code ${name}`, hexOf(code)) ? [[name.slice(2), hexOf(code)] as const] : [],
      ),
      slots: [...this.topStorageStack()].flatMap(([name, value]) => {
        const [address = '', key = ''] = name.split('_')
        return isChanged(name, hexOf(value)) ? [[address.slice(2), key.slice(2), hexOf(value)] as const] : []
      }),
    }
  }
}

function accountOf(sun: bigint | undefined, code: Uint8Array): Account | undefined {
  if (sun === undefined) return undefined
  return code.length === 0 ? new Account(0n, sun) : new Account(1n, sun, undefined, keccak_256(code))
}

/**
 * The prices of storage and of calls on TRON's virtual machine, which knows no cold or warm:
 * https://github.com/tronprotocol/java-tron, EnergyCost.java
 */
const STORAGE_PRICES = {
  sstoreSentryEIP2200Gas: 0,
  sstoreInitEIP2200Gas: 20_000,
  sstoreCleanEIP2200Gas: 5_000,
  sstoreNoopEIP2200Gas: 5_000,
  sstoreDirtyEIP2200Gas: 5_000,
  coldsloadGas: 0,
  coldaccountaccessGas: 0,
  warmstoragereadGas: 0,
}
const READ_PRICES = {
  sloadGas: 50,
  balanceGas: 20,
  extcodesizeGas: 20,
  extcodecopyGas: 20,
  extcodehashGas: 400,
  callGas: 40,
  callcodeGas: 40,
  delegatecallGas: 40,
  staticcallGas: 40,
}
/** By the number of the change to Ethereum that set them; a later one goes before an earlier one. */
const PRICES: Readonly<Record<string, Record<string, number>>> = {
  1679: STORAGE_PRICES,
  2929: { ...STORAGE_PRICES, ...READ_PRICES },
}
const params = Object.fromEntries(
  Object.entries(paramsEVM).map(([step, prices]) => [step, { ...prices, ...PRICES[step] }]),
)
const common = new Common({ chain: Mainnet, hardfork: Hardfork.Cancun })

/** A machine listens to its rules for good, so that rules kept for long keep every machine there ever was. */
function rulesOfOneRun(): Common {
  if (common.events.listenerCount('hardforkChanged') > 0)
    throw new Error('the rules of all runs keep a machine')
  return common.copy()
}

/** Per byte of the code that a deployment leaves. */
const CODE_PRICE = 200n

async function run(asked: EvmRun): Promise<EvmOutcome> {
  const rules = rulesOfOneRun()
  const stateManager = new AskedState({ common: rules })
  const evm = await createEVM({ common: rules, params, stateManager: stateManager as StateManagerInterface })
  const internal = watchPayments(evm)
  const [to, caller] = [addressOf(asked.to), addressOf(asked.caller)]
  const options = {
    to,
    caller,
    value: asked.value,
    gasLimit: asked.energyMax,
    block: blockAt(asked),
  }
  const result =
    asked.code === undefined
      ? (await evm.runCall({ ...options, data: Buffer.from(asked.data, 'hex') })).execResult
      : await deploy(Buffer.from(asked.code, 'hex'))
  const error = result.exceptionError?.error
  return {
    ...(error !== undefined && { error }),
    energyUsed: result.executionGasUsed < asked.energyMax ? result.executionGasUsed : asked.energyMax,
    returned: hexOf(result.returnValue),
    logs: (result.logs ?? []).map(([address, topics, data]) => ({
      address: hexOf(address),
      topics: topics.map(hexOf),
      data: hexOf(data),
    })),
    internal: internal(),
    ...(error === undefined ? stateManager.changes() : { balances: [], codes: [], slots: [] }),
  }

  /** Where a contract comes to lie is not what Ethereum makes of its sender, so its code is run where it shall lie. */
  async function deploy(code: Uint8Array): Promise<ExecResult> {
    const held = async (address: Address) => (await stateManager.getAccount(address))?.balance ?? 0n
    await stateManager.putAccount(caller, new Account(0n, (await held(caller)) - asked.value))
    await stateManager.putAccount(to, new Account(1n, (await held(to)) + asked.value))
    const result = await evm.runCode({ ...options, code })
    if (result.exceptionError !== undefined) return result
    const executionGasUsed = result.executionGasUsed + CODE_PRICE * BigInt(result.returnValue.length)
    if (executionGasUsed > asked.energyMax)
      return { ...result, exceptionError: new EVMError(EVMError.errorMessages.OUT_OF_GAS) }
    await stateManager.putCode(to, result.returnValue)
    return { ...result, executionGasUsed }
  }
}

function watchPayments(evm: EVM): () => EvmPayment[] {
  const payments: EvmPayment[] = []
  const open: number[] = []
  evm.events.on('beforeMessage', ({ depth, caller, to, value, delegatecall }) => {
    open.push(payments.length)
    if (depth === 0 || value === 0n || to === undefined || delegatecall) return
    payments.push({ from: hexOf(caller.bytes), to: hexOf(to.bytes), sun: value, isRejected: false })
  })
  evm.events.on('afterMessage', ({ execResult }) => {
    const from = open.pop() ?? 0
    if (execResult.exceptionError === undefined) return
    for (const [index, payment] of payments.entries())
      if (index >= from) payments[index] = { ...payment, isRejected: true }
  })
  return () => payments
}

function blockAt({ height, timeMs }: EvmRun): NonNullable<EVMRunCallOpts['block']> {
  return {
    header: {
      number: BigInt(height),
      timestamp: BigInt(Math.floor(timeMs / 1000)),
      coinbase: addressOf('0'.repeat(40)),
      difficulty: 0n,
      gasLimit: 0n,
      baseFeePerGas: 0n,
      prevRandao: new Uint8Array(32),
      getBlobGasPrice: () => 0n,
    },
  }
}

function addressOf(hex: string): Address {
  return new Address(Buffer.from(hex, 'hex'))
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

port.on('message', (message: ToEvm) => {
  if ('answer' in message) onAnswer(message.answer)
  else
    run(message.run).then(
      (outcome) => tell({ outcome }),
      (error) => tell({ failed: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
    )
})
tell({ ready: true })
