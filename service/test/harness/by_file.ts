import { chmodSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** A PostgreSQL that is reached through a file instead of a port. */
export type ByFile = {
  /** For the server. */
  readonly settings: Readonly<Record<string, string>>
  /** What its URL is then. */
  reach(url: string): string
}

/** Of the path to a socket: what unix(7) leaves for sun_path, and a little less, as other systems do. */
const PATH_MAX = 100

/**
 * Makes the folder that the file is to be in. Most of what a statement costs is the way to the server and back, which is shorter through a
 * file than through a port. Where the path would be too long, it stays a port.
 */
export function byFile(sockets: string): ByFile {
  if (join(sockets, '.s.PGSQL.65535').length > PATH_MAX) return { settings: {}, reach: (url) => url }
  mkdirSync(sockets, { recursive: true })
  // The server may run as somebody else.
  chmodSync(dirname(sockets), 0o755)
  chmodSync(sockets, 0o777)
  return {
    settings: { unix_socket_directories: sockets },
    reach: (url) => `${url}?host=${encodeURIComponent(sockets)}`,
  }
}
