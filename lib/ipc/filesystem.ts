/**
 * What kind of filesystem a path lies on. SQLite's write-ahead log needs shared memory between
 * processes and locks that hold; over a network both are promised and not kept, and a database is
 * damaged some day. So the state directory must be local (Q-01, L-02).
 */
import { TamqError } from "../base/errors.ts";

export interface Mount {
  readonly point: string;
  /** `ext4`, `nfs4`, `fuse.sshfs`, … */
  readonly type: string;
  /** Device, export or share. */
  readonly source: string;
}

/**
 * Kinds whose files are on another machine, or behind a program whose locks and mappings nobody
 * vouches for. `9p` and `virtiofs` are the shares of virtual machines (WSL's Windows drives among
 * them): several systems may have them open at once.
 */
const NETWORK = new Set([
  "nfs",
  "nfs4",
  "cifs",
  "smb",
  "smb2",
  "smb3",
  "smbfs",
  "9p",
  "virtiofs",
  "vboxsf",
  "vmhgfs",
  "prl_fs",
  "afs",
  "coda",
  "ceph",
  "lustre",
  "gfs2",
  "ocfs2",
  "glusterfs",
  "beegfs",
  "orangefs",
  "pvfs2",
  "ncpfs",
  "davfs",
  "davfs2",
]);
/** FUSE filesystems that are local: their files are on a disk of this machine. */
const LOCAL_FUSE = new Set([
  "fuse.ext2",
  "fuse.ext4",
  "fuse.fuse-overlayfs",
  "fuse.gocryptfs",
  "fuse.encfs",
  "fuse.cryfs",
  "fuse.bindfs",
  "fuse.mergerfs",
  "fuse.ntfs",
  "fuse.ntfs-3g",
  "fuse.lxcfs",
  "fuse.zfs",
  "fuse.apfs",
]);

export function isNetwork(type: string): boolean {
  return NETWORK.has(type) || (/^fuse\./.test(type) && !LOCAL_FUSE.has(type));
}

/** Rows of `/proc/self/mountinfo`; what does not look like one is skipped. */
export function parseMountInfo(text: string): Mount[] {
  const mounts: Mount[] = [];
  for (const line of text.split("\n")) {
    // id parent major:minor root mountpoint options [optional fields]* - type source superoptions
    const end = line.indexOf(" - ");
    const point = line.slice(0, Math.max(0, end)).split(" ")[4];
    const [type, source = ""] = line.slice(end + 3).split(" ");
    if (end < 0 || !point || !type) continue;
    mounts.push({ point: unescape(point), type, source: unescape(source) });
  }
  return mounts;
}

/** The kernel writes space, tab, line feed and backslash as three octal digits. */
function unescape(text: string): string {
  return text.replace(
    /\\([0-7]{3})/g,
    (_, octal: string) => String.fromCharCode(parseInt(octal, 8)),
  );
}

/** The mount that `path` lies on; of several at one point the last covers the others. */
export function mountOf(path: string, mounts: readonly Mount[]): Mount | undefined {
  let best: Mount | undefined;
  for (const mount of mounts) {
    const below = mount.point === "/" || path === mount.point ||
      path.startsWith(mount.point + "/");
    if (below && (best === undefined || mount.point.length >= best.point.length)) best = mount;
  }
  return best;
}

/** Of the nearest directory above `path` that exists; undefined when the kernel does not say. */
export function filesystemOf(path: string, mountinfo?: string): Mount | undefined {
  try {
    const text = mountinfo ?? Deno.readTextFileSync("/proc/self/mountinfo");
    return mountOf(existing(path), parseMountInfo(text));
  } catch {
    return undefined;
  }
}

function existing(path: string): string {
  for (let here = path;; here = here.slice(0, here.lastIndexOf("/")) || "/") {
    try {
      return Deno.realPathSync(here);
    } catch (error) {
      if (here === "/" || !(error instanceof Deno.errors.NotFound)) throw error;
    }
  }
}

/** Throws `state_dir_network`. */
export function refuseNetwork(path: string, mountinfo?: string): void {
  const mount = filesystemOf(path, mountinfo);
  if (mount === undefined || !isNetwork(mount.type)) return;
  throw new TamqError(
    "FAILED_PRECONDITION",
    "state_dir_network",
    `the state directory ${path} lies on a network filesystem ` +
      `(${mount.type} at ${mount.point}), where a database can be damaged`,
    {
      hint: "set TAMQ_STATE_DIR to a directory on a local disk; at your own risk: " +
        "allow_network_state_dir = true in the configuration",
    },
  );
}
