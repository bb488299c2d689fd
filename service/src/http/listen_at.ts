import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'

/** The host is a name that stands for no address, or nobody could be asked whether it does. */
export class HostUnknown extends Error {
  override readonly name = 'HostUnknown'
}

/** Opens the door, and answers where it is. */
export async function listenAt(
  app: FastifyInstance,
  at: { readonly port: number; readonly host: string },
): Promise<AddressInfo> {
  await app.listen(at).catch((error: NodeJS.ErrnoException) => {
    if (error.syscall !== 'getaddrinfo') throw error
    throw new HostUnknown(
      `Cannot listen on ${at.host}: the name has no address; set HOST to an address of this machine, or to a name of one.`,
    )
  })
  return app.server.address() as AddressInfo
}
