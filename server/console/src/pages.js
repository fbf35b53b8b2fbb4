// The pages, in the order of the navigation. A page is { id, title, icon, show(root, api, route) -> dispose }:
// `show` builds the page in `root`; `route` is the part of the address after the page's id, decoded; the function
// that it returns ends what the page has started. A page may be shown again later.

import { access } from "./access.js";
import { cluster } from "./cluster.js";
import { explore } from "./explore.js";
import { imports } from "./imports.js";
import { query } from "./query.js";
import { storage } from "./storage.js";

export const PAGES = [query, explore, imports, cluster, storage, access];
