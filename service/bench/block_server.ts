import { createServer } from 'node:http'
import { chanceFrom } from '../test/harness/chance.ts'
import { type BitcoinBlock, makeBitcoinBlock } from './blocks/bitcoin_block.ts'
import { type EvmBlock, type EvmShape, makeEvmBlock } from './blocks/evm_block.ts'
import { answerBench } from './server_process.ts'

/**
 * A node that has made its blocks beforehand and answers what a watcher asks: a process of its own, so that making and
 * serving them is not counted. `POST /head` with a height moves its head.
 *
 *   block_server.ts BTC <blocks>
 *   block_server.ts ETH <blocks> '{"txs":…,"swaps":…,"traces":"parity"}' <token> …
 */
const [chain = '', count = '1', shape = '{}', ...tokens] = process.argv.slice(2)
const LAST = Number(count)
let head = 0

/** `call`: the node is one that has no trace_block, like geth and bsc. */
export type EvmNodeShape = EvmShape & { readonly traces: 'parity' | 'call' }

type Call = { readonly id: number; readonly method: string; readonly params: readonly unknown[] }
/** JSON text of the result. */
type Node = (call: Call) => string | { readonly code: number; readonly message: string }

const node = chain === 'BTC' ? bitcoinNode() : evmNode(JSON.parse(shape), tokens)

function bitcoinNode(): Node {
  const chance = chanceFrom(1)
  const blocks: BitcoinBlock[] = []
  for (let height = 0; height <= LAST; height += 1) {
    blocks.push(makeBitcoinBlock(chance, blocks.at(-1)?.hash ?? '00'.repeat(32), height))
  }
  return ({ method, params }) => {
    switch (method) {
      case 'getblockchaininfo':
        return JSON.stringify({ blocks: head, bestblockhash: blocks[head]?.hash })
      case 'getblockhash':
        return (params[0] as number) > head
          ? { code: -8, message: 'Block height out of range' }
          : JSON.stringify(blocks[params[0] as number]?.hash)
      case 'getblock':
        return `"${blocks.find(({ hash }) => hash === params[0])?.hex}"`
      case 'getrawmempool':
        return '[]'
      case 'estimatesmartfee':
        return '{"feerate":0.00010000,"blocks":2}'
      case 'getmempoolinfo':
        return '{"mempoolminfee":0.00001000,"minrelaytxfee":0.00001000}'
      default:
        return { code: -32601, message: 'Method not found' }
    }
  }
}

function evmNode(asked: EvmNodeShape, listed: readonly string[]): Node {
  const chance = chanceFrom(2)
  const blocks: EvmBlock[] = []
  for (let height = 0; height <= LAST; height += 1) {
    const parentHash = blocks.at(-1)?.hash ?? chance.hex(32)
    blocks.push(makeEvmBlock(chance, asked, { chain, parentHash, height, tokens: listed }))
  }
  const byHash = new Map(blocks.map((block) => [block.hash, block]))
  const isMissing = { code: -32601, message: 'the method does not exist' }
  return ({ method, params }) => {
    const [first, second] = params
    switch (method) {
      case 'eth_getBlockByNumber': {
        const block = blocks[typeof first === 'string' && first.startsWith('0x') ? Number(first) : head]
        if (block === undefined || block.height > head) return 'null'
        return second === true ? block.block : block.header
      }
      case 'eth_getBlockReceipts':
        return byHash.get(String(first))?.receipts ?? 'null'
      case 'trace_block':
        return asked.traces === 'call' ? isMissing : (blocks[Number(first)]?.parityTraces ?? 'null')
      case 'debug_traceBlockByHash':
        return byHash.get(String(first))?.callTraces ?? 'null'
      case 'eth_blockNumber':
        return JSON.stringify(`0x${head.toString(16)}`)
      case 'eth_getBalance':
      case 'eth_gasPrice':
      case 'eth_maxPriorityFeePerGas':
        return '"0x3b9aca00"'
      case 'eth_call':
        return balanceOf(first as { to: string; data: string }, second)
      case 'eth_newPendingTransactionFilter':
        return '"0x1"'
      case 'eth_getFilterChanges':
        return '[]'
      default:
        return isMissing
    }
  }

  /** `balanceOf` at a block: of ours, what it got in that block. */
  function balanceOf({ to, data }: { to: string; data: string }, at: unknown): string {
    const block = byHash.get((at as { blockHash?: string }).blockHash ?? '')
    const units = block?.gained.get(`${to.toLowerCase()} 0x${data.slice(-40)}`) ?? 0n
    return `"0x${units.toString(16).padStart(64, '0')}"`
  }
}

function reply(call: Call): string {
  const answer = node(call)
  const result = typeof answer === 'string' ? `"result":${answer}` : `"error":${JSON.stringify(answer)}`
  const error = typeof answer === 'string' && chain === 'BTC' ? ',"error":null' : ''
  return `{"jsonrpc":"2.0","id":${call.id},${result}${error}}`
}

const server = createServer(async (request, response) => {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  const body = JSON.parse(Buffer.concat(parts).toString())
  if (request.url === '/head') {
    head = body
    response.end()
    return
  }
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(Array.isArray(body) ? `[${body.map(reply).join(',')}]` : reply(body))
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address !== null && typeof address === 'object') answerBench(`http://127.0.0.1:${address.port}`)
})
