import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * A free port for a server that is killed and comes back on it. It lies below the ports that Linux gives to outgoing
 * connections (32768 and up, ip_local_port_range): from among those, a client that keeps asking for the dead server can
 * be given that very port, is connected to itself, and holds the port against the server's return.
 */
export async function lastingPort(): Promise<number> {
  for (;;) {
    const port = randomInt(LOWEST, BELOW)
    if (await isFree(port)) return port
  }
}

const LOWEST = 10_000
const BELOW = 32_768

async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  const isListening = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => resolve(true))
  })
  if (isListening) await new Promise((resolve) => server.close(resolve))
  return isListening
}
