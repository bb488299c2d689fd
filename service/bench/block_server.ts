import { createServer } from 'node:http'
import { blockNodes } from './nodes/block_nodes.ts'
import { answerBench } from './server_process.ts'

/**
 * A node that has made its blocks beforehand and answers what a watcher asks: a process of its own, so that making and
 * serving them is not counted. `POST /head` with a height moves its head.
 *
 *   block_server.ts ETH <blocks>
 */
const [chain = '', last = '1'] = process.argv.slice(2)
const [, load] = Object.entries(blockNodes).find(([id]) => id === chain) ?? []
if (load === undefined) throw new Error(`${chain || 'nothing'} is no chain that has blocks here`)
const openNode = await load()
const node = openNode(Number(last))
let head = 0

const server = createServer(async (request, response) => {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  const body: unknown = parts.length === 0 ? null : JSON.parse(Buffer.concat(parts).toString())
  const { pathname: path, searchParams: query } = new URL(request.url ?? '/', 'http://node')
  if (path === '/head') {
    head = body as number
    response.end()
    return
  }
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(node({ path, query, body }, head))
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address !== null && typeof address === 'object') answerBench(`http://127.0.0.1:${address.port}`)
})
