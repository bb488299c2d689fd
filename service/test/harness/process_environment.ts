import { join } from 'node:path'

/**
 * What every process of ours that a test starts has in its environment: where programs are, and where `npm ci` has put
 * what Node compiled of us. With it a start costs half; some four hundred processes are started.
 */
export const processEnvironment = {
  PATH: process.env.PATH ?? '',
  NODE_COMPILE_CACHE: join(import.meta.dirname, '../../../node_modules/.cache/cambist'),
}
