import { createServer } from 'node:http'
import { answerBench } from './server_process.ts'

/** The least a request can cost in Node: the same bytes every time, whatever was asked. */
const bytes = Buffer.from(process.argv[2] ?? '')
const headers = { 'Content-Type': 'application/json', 'Content-Length': bytes.length }
const server = createServer((_request, response) => {
  response.writeHead(200, headers)
  response.end(bytes)
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address !== null && typeof address === 'object') answerBench(`http://127.0.0.1:${address.port}`)
})
