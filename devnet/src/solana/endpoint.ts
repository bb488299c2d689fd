import { CutLine, type Endpoint, jsonReply } from '../simulated/server.ts'
import { CommandError, type SolanaNode } from './command.ts'
import { commands } from './commands.ts'

type Request = { readonly id?: unknown; readonly method?: unknown; readonly params?: unknown }

/** JSON-RPC over HTTP, one question or a list of them. */
export function solanaEndpoint(node: SolanaNode): Endpoint {
  return {
    http: async ({ body }) => {
      const asked = JSON.parse(body) as Request | readonly Request[]
      if (!Array.isArray(asked)) return jsonReply(answer(node, asked as Request))
      return jsonReply(asked.map((each: Request) => answer(node, each)))
    },
  }
}

function answer(node: SolanaNode, { id = null, method, params }: Request) {
  const name = String(method)
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  try {
    if (command === undefined) throw new CommandError(-32601, 'Method not found')
    return { jsonrpc: '2.0', id, result: command(node, Array.isArray(params) ? params : []) }
  } catch (error) {
    if (error instanceof CutLine) throw error
    if (!(error instanceof CommandError)) throw error
    const { code, message, data } = error
    return { jsonrpc: '2.0', id, error: { code, message, ...(data !== undefined && { data }) } }
  }
}
